// Package panics keeps a panic of one goroutine from ending the process. So a bug that one command or one connection
// meets ends that, and none of the others.
//
// [Catch] and [Result] turn a panic into an error, which reaches the goroutine that waits for the result. Where none
// waits, [Guard.Recover] logs and counts it. A test holds all goroutines of the server against that.
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
