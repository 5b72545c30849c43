// Prints its arguments and the size of its input. Counts its runs in a folder.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
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
	if strings.Contains(string(arguments), "visit") {
		before, _ := os.ReadFile("/data/visits")
		visits, _ := strconv.Atoi(string(before))
		if err := os.WriteFile("/data/visits", []byte(strconv.Itoa(visits+1)), 0o600); err != nil {
			panic(err)
		}
		fmt.Printf("{\"visits\":%d}\n", visits+1)
		return
	}
	fmt.Printf("{\"bytes\":%d,\"arguments\":%s}\n", len(arguments), arguments)
}
