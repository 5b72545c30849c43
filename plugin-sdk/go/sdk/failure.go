package toolbay

import (
	"errors"
	"fmt"
)

// InvalidArguments returns an error for arguments that match the schema but
// make no sense. State how to correct them: the model reads the message and
// may try again. It formats like [fmt.Errorf].
//
// Any other error that a tool returns is a failure of the tool.
func InvalidArguments(format string, values ...any) error {
	return &invalidArguments{fmt.Errorf(format, values...)}
}

// IsInvalidArguments reports whether an error is one of [InvalidArguments].
func IsInvalidArguments(err error) bool {
	var invalid *invalidArguments
	return errors.As(err, &invalid)
}

type invalidArguments struct{ error }

func (i *invalidArguments) Unwrap() error { return i.error }
