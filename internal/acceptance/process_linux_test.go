package acceptance_test

import "syscall"

// dieWithParent makes the kernel kill a process when the test process exits for any reason.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
