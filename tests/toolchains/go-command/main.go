// Says how many bytes it was given, and what it was given.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	arguments, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	if strings.Contains(string(arguments), "fail") {
		fmt.Fprintln(os.Stderr, "asked to fail")
		os.Exit(3)
	}
	fmt.Printf("{\"bytes\":%d,\"arguments\":%s}\n", len(arguments), arguments)
}
