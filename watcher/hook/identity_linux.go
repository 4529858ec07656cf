package hook

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"mailtree/maildir/tree"
)

// identity tells a process from every other, also from a later one of the same number: by the boot,
// and when in it the process began. "" for one that has ended, whether or not somebody has asked
// how. The error says that it cannot be told now. Source: proc_pid_stat(5), where reading of one
// that ends is ESRCH.
func identity(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if tree.FaultOf(err) == tree.FaultMachine && !errors.Is(err, syscall.ESRCH) {
		return "", err
	}
	if err != nil {
		return "", nil
	}
	const state, began = 0, 19 // of the fields behind the name; the 3rd and the 22nd of all
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= began || string(fields[state]) == "Z" || string(fields[state]) == "X" {
		return "", nil
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return string(bytes.TrimSpace(boot)) + "/" + string(fields[began]), nil
}
