// The official Go SDK against the real server.
package main

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"toolbay.dev/clients/conversation"
)

// session is the newest revision with sessions.
const session = "2025-11-25"

type client struct{ *mcp.ClientSession }

func connect(ctx context.Context, to conversation.Target, news *conversation.News) (conversation.Client, error) {
	options := &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { news.Changed <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			news.Progress <- request.Params.Progress
		},
		LoggingMessageHandler: func(_ context.Context, request *mcp.LoggingMessageRequest) {
			news.Log <- string(request.Params.Level)
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			news.Asked <- "elicitation/create"
			return &mcp.ElicitResult{
				Action: "accept", Content: map[string]any{"username": "ada", "email": "ada@example.com"},
			}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			news.Asked <- "sampling/createMessage"
			return &mcp.CreateMessageResult{
				Content: &mcp.TextContent{Text: "Paris."}, Model: "a model", Role: "assistant",
			}, nil
		},
	}
	own := mcp.NewClient(&mcp.Implementation{Name: "toolbay-tests", Version: "0"}, options)
	own.AddRoots(&mcp.Root{URI: "file:///home/ada", Name: "home"})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: to.URL}
	switch {
	case to.Command != nil:
		transport = &mcp.CommandTransport{Command: to.Command}
	case to.SSE:
		transport = &mcp.SSEClientTransport{Endpoint: to.URL}
	}
	var begin *mcp.ClientSessionOptions
	if to.Legacy {
		begin = &mcp.ClientSessionOptions{ProtocolVersion: session}
	}
	begun, err := own.Connect(ctx, transport, begin)
	if err != nil {
		return nil, err
	}
	return client{begun}, nil
}

func (c client) Names(ctx context.Context) ([]string, error) {
	listed, err := c.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c client) Call(
	ctx context.Context, name string, arguments map[string]any, progress bool,
) (conversation.Result, error) {
	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	if progress {
		params.SetProgressToken(name)
	}
	result, err := c.CallTool(ctx, params)
	if err != nil {
		return conversation.Result{}, err
	}
	var text string
	for _, block := range result.Content {
		if words, is := block.(*mcp.TextContent); is {
			text += words.Text
		}
	}
	return conversation.Result{Text: text, Structured: result.StructuredContent, IsError: result.IsError}, nil
}

func (c client) IsUnknown(err error) bool {
	var refusal *jsonrpc.Error
	return errors.As(err, &refusal) && refusal.Code == -32602
}

func (c client) SetLevel(ctx context.Context, level string) error {
	return c.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)})
}

func (c client) Revision() string {
	return c.InitializeResult().ProtocolVersion
}

func (c client) Lacks(conversation.Ability) bool {
	return false
}

func main() {
	conversation.Main(connect)
}
