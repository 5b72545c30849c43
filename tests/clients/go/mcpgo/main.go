// mcp-go against the real server.
package main

import (
	"context"
	"os/exec"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"toolbay.dev/clients/conversation"
)

type person struct{ news *conversation.News }

func (p person) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	p.news.Asked <- "elicitation/create"
	content := map[string]any{"username": "ada", "email": "ada@example.com"}
	response := mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: content}
	return &mcp.ElicitationResult{ElicitationResponse: response}, nil
}

func (p person) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	p.news.Asked <- "sampling/createMessage"
	said := mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("Paris.")}
	return &mcp.CreateMessageResult{SamplingMessage: said, Model: "a model"}, nil
}

func (p person) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///home/ada", Name: "home"}}}, nil
}

type own struct {
	*client.Client
	stop func()
	to   conversation.Target
}

func connect(ctx context.Context, to conversation.Target, news *conversation.News) (conversation.Client, error) {
	var way transport.Interface
	var err error
	switch {
	case to.Command != nil:
		whole := to.Command
		run := func(context.Context, string, []string, []string) (*exec.Cmd, error) { return whole, nil }
		way = transport.NewStdioWithOptions(whole.Path, nil, nil, transport.WithCommandFunc(run))
	case to.SSE:
		way, err = transport.NewSSE(to.URL)
	case to.Legacy:
		way, err = transport.NewStreamableHTTP(to.URL, transport.WithContinuousListening())
	default:
		way, err = transport.NewStreamableHTTP(to.URL)
	}
	if err != nil {
		return nil, err
	}
	someone := person{news}
	options := []client.ClientOption{
		client.WithElicitationHandler(someone), client.WithSamplingHandler(someone), client.WithRootsHandler(someone),
	}
	if to.Legacy {
		options = append(options, client.WithLegacyProtocolOnly())
	}
	made := client.NewClient(way, options...)
	made.OnNotification(func(notification mcp.JSONRPCNotification) {
		switch notification.Method {
		case "notifications/tools/list_changed":
			news.Changed <- struct{}{}
		case "notifications/progress":
			step, _ := notification.Params.AdditionalFields["progress"].(float64)
			news.Progress <- step
		case "notifications/message":
			level, _ := notification.Params.AdditionalFields["level"].(string)
			news.Log <- level
		}
	})
	if err := made.Start(ctx); err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: "toolbay-tests", Version: "0"}
	if _, err := made.Initialize(ctx, hello); err != nil {
		return nil, err
	}
	stop := func() {}
	if !to.Legacy {
		// In this revision, a client is notified only of changes that it requested.
		if stop, err = made.ListenAsync(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, nil); err != nil {
			return nil, err
		}
	}
	return own{made, stop, to}, nil
}

func (c own) Names(ctx context.Context) ([]string, error) {
	listed, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c own) Call(
	ctx context.Context, name string, arguments map[string]any, progress bool,
) (conversation.Result, error) {
	var request mcp.CallToolRequest
	request.Params.Name = name
	request.Params.Arguments = arguments
	if progress {
		request.Params.Meta = &mcp.Meta{ProgressToken: name}
	}
	result, err := c.CallTool(ctx, request)
	if err != nil {
		return conversation.Result{}, err
	}
	var text string
	for _, block := range result.Content {
		if words, is := block.(mcp.TextContent); is {
			text += words.Text
		}
	}
	return conversation.Result{Text: text, Structured: result.StructuredContent, IsError: result.IsError}, nil
}

func (c own) IsUnknown(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Unknown tool")
}

func (c own) SetLevel(ctx context.Context, level string) error {
	var request mcp.SetLevelRequest
	request.Params.Level = mcp.LoggingLevel(level)
	return c.Client.SetLevel(ctx, request)
}

func (c own) Revision() string {
	return c.ProtocolVersion()
}

func (c own) Close() error {
	c.stop()
	return c.Client.Close()
}

// Lacks implements Client. The transport of 2024 does not accept requests of the server, and in a session over HTTP the
// package does not notify the server of a cancelled call.
func (c own) Lacks(ability conversation.Ability) bool {
	switch ability {
	case conversation.Answers:
		return c.to.SSE
	case conversation.Cancels:
		return c.to.Command == nil && c.to.Legacy
	}
	return false
}

func main() {
	conversation.Main(connect)
}
