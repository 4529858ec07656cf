package hook

import "time"

// Stop ends a process group as a runner does.
func Stop(second time.Duration, group int, ended <-chan error) (waited bool, err error) {
	return New(Config{Second: second}).stop(group, ended, killAfter)
}
