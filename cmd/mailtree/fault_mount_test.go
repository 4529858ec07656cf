package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// needMounts skips a test where file systems cannot be mounted.
func needMounts(t *testing.T, tools ...string) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("not done here: mounting a file system needs root on Linux")
	}
	for _, tool := range append(tools, "mount", "umount") {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("not done here: there is no %s", tool)
		}
	}
}

// mount mounts a file system on a new folder until the test ends, and skips the test where the kernel refuses.
func mount(t *testing.T, args ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", append(args, dir)...).CombinedOutput(); err != nil {
		t.Skipf("not done here: mount %v: %v: %s", args, err, out)
	}
	t.Cleanup(func() { unmount(t, dir) })
	return dir
}

// unmount unmounts, once.
func unmount(t *testing.T, dir string) {
	t.Helper()
	if exec.Command("mountpoint", "-q", dir).Run() != nil {
		return
	}
	if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
		t.Errorf("umount: %v: %s", err, out)
		exec.Command("umount", "-l", dir).Run()
	}
}

// image makes an ext4 file system of that many MiB in a file.
func image(t *testing.T, size string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "disk.img")
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", file, size).CombinedOutput(); err != nil {
		t.Skipf("not done here: mkfs.ext4: %v: %s", err, out)
	}
	return file
}
