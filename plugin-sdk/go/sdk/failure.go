package toolbay

import (
	"errors"
	"fmt"
)

// InvalidArguments is the error of arguments that match the schema but make no
// sense. Say what would be right: the model reads it and may try again. It
// formats as [fmt.Errorf] does.
//
// Any other error that a tool returns means that it could not do its work.
func InvalidArguments(format string, values ...any) error {
	return &invalidArguments{fmt.Errorf(format, values...)}
}

// IsInvalidArguments: whether an error blames the arguments.
func IsInvalidArguments(err error) bool {
	var invalid *invalidArguments
	return errors.As(err, &invalid)
}

type invalidArguments struct{ error }

func (i *invalidArguments) Unwrap() error { return i.error }
