package hook

import (
	"bytes"
	"os"
	"strconv"
)

// identity tells a process from every other, also from a later one of the same number: by the boot, and when in it the
// process began. "" for one that has ended, whether or not somebody has asked how. Source: proc_pid_stat(5).
func identity(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	const state, began = 0, 19 // of the fields behind the name; the 3rd and the 22nd of all
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= began || string(fields[state]) == "Z" || string(fields[state]) == "X" {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(boot)) + "/" + string(fields[began])
}
