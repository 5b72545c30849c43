// Package conversation is the conversation of every Go client with the real server.
//
//	CLIENT MODE TRANSPORT SERVER PLUGINS NEWCOMER
//
// MODE is auto or legacy; TRANSPORT stdio, http or sse; SERVER the binary; PLUGINS a folder with the sample plugins;
// NEWCOMER a further plugin, with the tool shout, which the test adds later.
package conversation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is the timeout of the whole conversation.
const patience = 3 * time.Minute

// atOnce is the number of concurrent calls on one session.
const atOnce = 400

// endless is the grant of a plugin that never ends: one call at a time, without a timeout.
const endless = "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"\n"

// unlimited is the grant of a plugin with many concurrent calls.
const unlimited = "[rate_limit]\ncalls = 100_000\nper = \"1m\"\n"

// Result is the result of a tool.
type Result struct {
	Text       string
	Structured any
	IsError    bool
}

// Client is a package under test.
type Client interface {
	// Names lists the tools.
	Names(ctx context.Context) ([]string, error)
	// Call calls a tool. If progress is set, it receives the progress.
	Call(ctx context.Context, name string, arguments map[string]any, progress bool) (Result, error)
	// IsUnknown reports whether the error is that of a tool that does not exist.
	IsUnknown(err error) bool
	// SetLevel sets the lowest level of log messages, in a session.
	SetLevel(ctx context.Context, level string) error
	// Revision returns the negotiated revision.
	Revision() string
	// Lacks returns the abilities that the package lacks on this transport.
	Lacks(ability Ability) bool
	Close() error
}

// Ability is a feature that not every package has on every transport.
type Ability int

const (
	// Answers means that the client answers questions.
	Answers Ability = iota
	// Cancels means that the server is notified of a cancelled call.
	Cancels
)

// News has the notifications and requests of the server.
type News struct {
	Changed  chan struct{}
	Progress chan float64
	Log      chan string
	// Asked has the method of each question.
	Asked chan string
}

// Target is the target of the connection: a command, or a URL.
type Target struct {
	Command *exec.Cmd
	URL     string
	Legacy  bool
	SSE     bool
}

// Connect creates a client of the package.
type Connect func(ctx context.Context, to Target, news *News) (Client, error)

type checks struct{ passed, failed int }

func (c *checks) check(what string, ok bool, otherwise any) {
	if ok {
		c.passed++
		fmt.Printf("ok      %s\n", what)
	} else {
		c.failed++
		fmt.Printf("FAILED  %s: %v\n", what, otherwise)
	}
}

// Main has the conversation of the arguments, and ends the program.
func Main(connect Connect) {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: CLIENT MODE TRANSPORT SERVER PLUGINS NEWCOMER")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var c checks
	if err := run(ctx, connect, &c); err != nil {
		c.check("the conversation goes on to its end", false, err)
	}
	fmt.Printf("%d passed, %d failed\n", c.passed, c.failed)
	if c.failed > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, connect Connect, c *checks) error {
	mode, transport, server, plugins, newcomer := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	root, err := os.MkdirTemp("", "toolbay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	folder := filepath.Join(root, "plugins")
	if err := layOut(folder, plugins, newcomer); err != nil {
		return err
	}
	command := func(arguments ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, server, append(arguments, "--plugins", folder)...)
		command.Dir = root
		command.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(root, "cache"))
		return command
	}
	// So that all tools are available immediately, even on a slow machine.
	if said, err := command("compile").CombinedOutput(); err != nil {
		return fmt.Errorf("toolbay compile failed: %s", said)
	}
	to := Target{Legacy: mode == "legacy", SSE: transport == "sse"}
	end := func() error { return nil }
	if transport == "stdio" {
		to.Command = command("serve", "--log", "warn")
	} else if to.URL, end, err = serve(command("serve", "--http", "127.0.0.1:0", "--sse")); err != nil {
		return err
	}
	if to.SSE {
		to.URL = strings.TrimSuffix(to.URL, "/mcp") + "/sse"
	}
	news := &News{
		Changed: make(chan struct{}, 1024), Progress: make(chan float64, 1024),
		Log: make(chan string, 1024), Asked: make(chan string, 1024),
	}
	client, err := connect(ctx, to, news)
	if err != nil {
		return err
	}
	if err := converse(ctx, client, news, folder, newcomer, to.Legacy, c); err != nil {
		return err
	}
	if err := client.Close(); err != nil {
		c.check("the client closes", false, err)
	}
	err = end()
	c.check("the server ends well", err == nil, err)
	return nil
}

func layOut(folder, plugins, newcomer string) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	sources := []string{
		filepath.Join(plugins, "calculator.wasm"),
		filepath.Join(filepath.Dir(newcomer), "conformance.wasm"),
		filepath.Join(filepath.Dir(newcomer), "hostile.wasm"),
	}
	for _, source := range sources {
		if err := copyFile(source, filepath.Join(folder, filepath.Base(source))); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "calculator.toml"), []byte(unlimited), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "hostile.toml"), []byte(endless), 0o644)
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// serve starts a server that listens, and returns its URL and a function that ends it.
func serve(command *exec.Cmd) (string, func() error, error) {
	log, err := command.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := command.Start(); err != nil {
		return "", nil, err
	}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return "", nil, errors.New("the server did not start")
		}
		if _, url, found := strings.Cut(line, "listening on "); found {
			// Read to its end, so that the server never blocks.
			go io.Copy(io.Discard, lines)
			end := func() error {
				if err := command.Process.Signal(syscall.SIGTERM); err != nil {
					return err
				}
				return command.Wait()
			}
			return strings.TrimSpace(url), end, nil
		}
	}
}

func converse(
	ctx context.Context, client Client, news *News, folder, newcomer string, legacy bool, c *checks,
) error {
	revision := client.Revision()
	c.check("connects, with revision "+revision, legacy == (revision < "2026-07-28"), revision)
	names, err := client.Names(ctx)
	if err != nil {
		return fmt.Errorf("listing tools: %w", err)
	}
	all := true
	for _, known := range []string{"calculate_sum", "test_tool_with_progress", "loop_forever"} {
		all = all && slices.Contains(names, known)
	}
	c.check("lists tools", all, names)

	sum, err := client.Call(ctx, "calculate_sum", map[string]any{"a": 1, "b": 2.5}, false)
	if err != nil {
		return fmt.Errorf("calling a tool: %w", err)
	}
	structured, _ := sum.Structured.(map[string]any)
	c.check("calls a tool", structured["sum"] == 3.5 || revision < "2025-06-18", sum)
	failed, err := client.Call(ctx, "test_error_handling", nil, false)
	c.check("a failure is a result", err == nil && failed.IsError, err)
	_, err = client.Call(ctx, "no_such_tool", nil, false)
	c.check("an unknown tool is error -32602", client.IsUnknown(err), err)

	_, err = client.Call(ctx, "test_tool_with_progress", nil, true)
	c.check("a call with progress ends", err == nil, err)
	for _, expected := range []float64{0, 50, 100} {
		step, err := next(ctx, news.Progress)
		c.check(fmt.Sprintf("progress %v comes as it is made", expected), err == nil && step == expected, step)
	}
	if legacy {
		if err := client.SetLevel(ctx, "info"); err != nil {
			return fmt.Errorf("setting the level: %w", err)
		}
		if _, err := client.Call(ctx, "test_tool_with_logging", nil, false); err != nil {
			return fmt.Errorf("a call that logs: %w", err)
		}
		line, err := next(ctx, news.Log)
		c.check("log messages come", err == nil && line != "", err)
	}
	if !client.Lacks(Answers) {
		if err := questions(ctx, client, news, c); err != nil {
			return err
		}
	}
	if err := many(ctx, client, c); err != nil {
		return err
	}

	if !client.Lacks(Cancels) {
		if err := giveUp(ctx, client, news, c); err != nil {
			return err
		}
	}
	target := filepath.Join(folder, "newcomer.wasm")
	if err := copyFile(newcomer, target); err != nil {
		return err
	}
	if err := told(ctx, client, news, true); err != nil {
		return fmt.Errorf("waiting for a new tool: %w", err)
	}
	shouted, err := client.Call(ctx, "shout", map[string]any{"text": "hello"}, false)
	c.check("is told of a new tool, and calls it", err == nil && strings.Contains(shouted.Text, "HELLO"), shouted)
	if err := os.Remove(target); err != nil {
		return err
	}
	if err := told(ctx, client, news, false); err != nil {
		return fmt.Errorf("waiting until a tool is gone: %w", err)
	}
	c.check("is told that it is gone", true, nil)
	return nil
}

// giveUp cancels a call that computes forever and blocks all other calls of its plugin.
func giveUp(ctx context.Context, client Client, news *News, c *checks) error {
	given, giveUp := context.WithCancel(ctx)
	defer giveUp()
	ended := make(chan error, 1)
	go func() {
		_, err := client.Call(given, "loop_forever", nil, true)
		ended <- err
	}()
	if _, err := next(ctx, news.Progress); err != nil {
		return fmt.Errorf("the call did not begin: %w", err)
	}
	giveUp()
	<-ended
	count, err := client.Call(ctx, "count", nil, false)
	c.check("a call that is given up ends, and the next one gets its turn", err == nil && count.Text == "1", err)
	return nil
}

// questions makes plugins ask for the client's user, its model and its folders.
func questions(ctx context.Context, client Client, news *News, c *checks) error {
	for _, question := range []struct {
		tool      string
		arguments map[string]any
		method    string
		answer    string
	}{
		{"test_elicitation", map[string]any{"message": "Who?"}, "elicitation/create", "action=accept"},
		{"test_sampling", map[string]any{"prompt": "The capital of France?"}, "sampling/createMessage", "Paris"},
		{"test_input_required_result_list_roots", nil, "roots/list", "file:///home/ada"},
	} {
		result, err := client.Call(ctx, question.tool, question.arguments, false)
		if err != nil {
			return fmt.Errorf("%s: %w", question.tool, err)
		}
		c.check("answers "+question.method, strings.Contains(result.Text, question.answer), result)
		if question.method != "roots/list" {
			asked, err := next(ctx, news.Asked)
			c.check("is asked with "+question.method, err == nil && asked == question.method, asked)
		}
	}
	return nil
}

// many makes concurrent calls on one session.
func many(ctx context.Context, client Client, c *checks) error {
	var calls sync.WaitGroup
	wrong := make(chan string, atOnce)
	for n := range atOnce {
		calls.Go(func() {
			result, err := client.Call(ctx, "calculate_sum", map[string]any{"a": n, "b": 0.5}, false)
			structured, _ := result.Structured.(map[string]any)
			if err != nil || structured["sum"] != float64(n)+0.5 {
				wrong <- fmt.Sprintf("%v %v", err, result)
			}
		})
	}
	calls.Wait()
	close(wrong)
	c.check(fmt.Sprintf("%d calls at once on one session", atOnce), len(wrong) == 0, <-wrong)
	return nil
}

// told waits until the client was notified of a list that contains, or does not contain, the newcomer.
func told(ctx context.Context, client Client, news *News, listed bool) error {
	for {
		if _, err := next(ctx, news.Changed); err != nil {
			return err
		}
		names, err := client.Names(ctx)
		if err != nil {
			return err
		}
		if slices.Contains(names, "shout") == listed {
			return nil
		}
	}
}

func next[T any](ctx context.Context, from <-chan T) (T, error) {
	select {
	case value := <-from:
		return value, nil
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
