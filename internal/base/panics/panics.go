// Package panics keeps a panic of one goroutine from ending the process. So a bug that one command or one connection
// meets ends that, and none of the others.
//
// Each goroutine of the program begins here. [Start] turns a panic into an error, which reaches the goroutine that
// waits for the result, as [Catch] and [Result] do. Where none waits, [Guard.Go] logs and counts it. [Go] is for work
// that no panic reaches. Only members of a group that is waited for, and timers, begin elsewhere.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// An Error is what a goroutine has panicked with.
type Error struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error implements error. The text has no stack.
func (e *Error) Error() string { return fmt.Sprint("panic: ", e.Value) }

// Catch does work and returns its error. A panic is an [Error].
func Catch(work func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{value, debug.Stack()}
		}
	}()
	return work()
}

// Result does work and returns its result, and its error as [Catch] does.
func Result[T any](work func() (T, error)) (result T, err error) {
	err = Catch(func() (err error) {
		result, err = work()
		return err
	})
	return result, err
}

// Start does work in a goroutine of its own. Its error arrives when it ends, as that of [Catch].
func Start(work func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- Catch(work) }()
	return result
}

// Go does work in a goroutine of its own, whose panic ends the process. So the work catches its panics, or does nothing
// with what a client or S3 sends: it waits, closes, cancels or counts. Or it is a loop without which the process is
// better restarted, such as one that accepts connections.
func Go(work func()) { go work() }

// Raise panics again where err is or wraps what a goroutine has panicked with.
func Raise(err error) {
	if p, ok := errors.AsType[*Error](err); ok {
		panic(p)
	}
}

// Stack is that of a recovered value's panic: where the goroutine panicked first, or else the present one.
func Stack(recovered any) []byte {
	if p, ok := recovered.(*Error); ok {
		return p.Stack
	}
	return debug.Stack()
}
