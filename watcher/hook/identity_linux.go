package hook

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"mailtree/maildir/tree"
)

// identity returns a string that identifies a process even if its pid is reused. The string consists of the boot id
// and the time since boot at which the process started. It is "" for a process that has ended, whether or not its
// parent has waited on it. If the file temporarily cannot be read, identity returns an error. See proc_pid_stat(5).
// For a process that is ending, reading the file fails with ESRCH.
func identity(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if tree.FaultOf(err) == tree.FaultMachine && !errors.Is(err, syscall.ESRCH) {
		return "", err
	}
	if err != nil {
		return "", nil
	}
	const state, began = 0, 19 // indexes in the fields after the name; proc_pid_stat(5) numbers these fields 3 and 22
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
