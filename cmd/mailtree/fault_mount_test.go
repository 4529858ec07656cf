package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// needMounts skips a test if file systems cannot be mounted here.
func needMounts(t *testing.T, tools ...string) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		notHere(t, "mounting a file system needs root on Linux")
	}
	for _, tool := range append(tools, "mount", "umount") {
		if _, err := exec.LookPath(tool); err != nil {
			notHere(t, "there is no %s", tool)
		}
	}
}

// notHere skips a test. It prints the reason on one line, which .ci/run and .ci/campaign include in their summaries.
func notHere(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Skipf("not done here: %s: %s", t.Name(), strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// mount mounts a file system on a new folder until the test ends. If the kernel refuses, mount skips the test.
func mount(t *testing.T, args ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", append(args, dir)...).CombinedOutput(); err != nil {
		notHere(t, "mount %v: %v: %s", args[:len(args)-1], err, out)
	}
	t.Cleanup(func() { unmount(t, dir) })
	return dir
}

// unmount unmounts a folder. If the folder is not a mount point, unmount does nothing.
func unmount(t *testing.T, dir string) {
	t.Helper()
	if exec.Command("mountpoint", "-q", dir).Run() != nil {
		return
	}
	var out []byte
	var err error
	// A child process that another test has just forked keeps our files open until its exec.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if out, err = exec.Command("umount", dir).CombinedOutput(); err == nil {
			return
		}
	}
	t.Errorf("umount: %v: %s", err, out)
	exec.Command("umount", "-l", dir).Run()
}

// image creates a file with an ext4 file system of the given size.
func image(t *testing.T, size string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "disk.img")
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", file, size).CombinedOutput(); err != nil {
		notHere(t, "mkfs.ext4: %v: %s", err, out)
	}
	return file
}
