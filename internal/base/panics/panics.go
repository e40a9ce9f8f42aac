// Package panics prevents a panic in one goroutine from ending the process. A bug that is triggered by one command or
// connection then affects only this command or connection.
//
// The program starts its goroutines with this package. There are three ways:
//
//   - [Start] returns a channel for the result of the work. A panic becomes an [Error], as with [Catch] and [Result].
//   - [Guard.Go] is for work whose result nobody waits for. A panic is logged and counted.
//   - [Go] is for work that cannot panic, or without which the process has to be restarted.
//
// The exceptions are members of an errgroup, which use [Catch], and timers.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// An Error contains the value of a panic.
type Error struct {
	Value any
	Stack []byte // stack of the goroutine that panicked
}

// Error implements error. The text does not contain the stack.
func (e *Error) Error() string { return fmt.Sprint("panic: ", e.Value) }

// Catch calls work and returns its error. A panic becomes an [Error].
func Catch(work func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{value, debug.Stack()}
		}
	}()
	return work()
}

// Result is like [Catch] for work with a result.
func Result[T any](work func() (T, error)) (result T, err error) {
	err = Catch(func() (err error) {
		result, err = work()
		return err
	})
	return result, err
}

// Start runs work in a new goroutine. The channel receives the result of [Catch] when the work has ended.
func Start(work func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- Catch(work) }()
	return result
}

// Go runs work in a new goroutine whose panic ends the process. The work must handle its panics itself, or not process
// data from clients or S3 but only wait, close, cancel or count. It may also be a loop without which the process should
// be restarted, such as the one that accepts connections.
func Go(work func()) { go work() }

// Raise panics with err if err is or wraps an [Error].
func Raise(err error) {
	if p, ok := errors.AsType[*Error](err); ok {
		panic(p)
	}
}

// Stack returns the stack of the panic with a recovered value. If the value is an [Error], it is the stack of the
// original panic.
func Stack(recovered any) []byte {
	if p, ok := recovered.(*Error); ok {
		return p.Stack
	}
	return debug.Stack()
}
