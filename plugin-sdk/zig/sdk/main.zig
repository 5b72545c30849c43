//! The root of a plugin: the exports of the component, which dispatch to the tools, prompts, resources and
//! completions of the module `plugin`. It exports the interfaces of those that the module declares.

const std = @import("std");
const Allocator = std.mem.Allocator;
const plugin = @import("plugin");
const toolbay = @import("toolbay");
const abi = toolbay.abi;

/// Handler of Zig's safety checks.
pub const panic = toolbay.panic;

/// Nothing is freed: the instance ends with the call.
const arena = toolbay.memory;

const has_prompts = @hasDecl(plugin, "prompts");
const has_resources = @hasDecl(plugin, "resources");
const has_completions = @hasDecl(plugin, "completions");

comptime {
    @export(&reallocate, .{ .name = "cabi_realloc" });
    // A plugin that offers nothing gets the error that it has no tools.
    if (@hasDecl(plugin, "tools") or !(has_prompts or has_resources)) {
        @export(&listTools, .{ .name = "toolbay:plugin/tools@0.2.0#list-tools" });
        @export(&callTool, .{ .name = "toolbay:plugin/tools@0.2.0#call-tool" });
    }
    if (has_prompts) {
        @export(&listPrompts, .{ .name = "toolbay:plugin/prompts@0.2.0#list-prompts" });
        @export(&getPrompt, .{ .name = "toolbay:plugin/prompts@0.2.0#get-prompt" });
    }
    if (has_resources) {
        @export(&listResources, .{ .name = "toolbay:plugin/resources@0.2.0#list-resources" });
        @export(&listTemplates, .{ .name = "toolbay:plugin/resources@0.2.0#list-resource-templates" });
        @export(&readResource, .{ .name = "toolbay:plugin/resources@0.2.0#read-resource" });
    }
    if (has_completions) @export(&complete, .{ .name = "toolbay:plugin/completion@0.2.0#complete" });
    if (toolbay.mistake(
        if (has_prompts) &plugin.prompts else &.{},
        if (has_resources) &plugin.resources else &.{},
        if (has_completions) &plugin.completions else &.{},
    )) |why| @compileError(why);
}

/// Allocates memory that the host writes strings to.
fn reallocate(old: [*]u8, old_size: usize, alignment: usize, size: usize) callconv(.c) [*]u8 {
    // Enough for every type of the contract.
    const all: std.mem.Alignment = .@"8";
    std.debug.assert(alignment <= all.toByteUnits());
    const new = arena.alignedAlloc(u8, all, @max(size, 1)) catch outOfMemory();
    if (old_size > 0) @memcpy(new[0..@min(old_size, size)], old[0..@min(old_size, size)]);
    return new.ptr;
}

fn outOfMemory() noreturn {
    @panic("out of memory");
}

fn listTools() callconv(.c) *const abi.List(abi.ToolDefinition) {
    const answer = struct {
        var list: abi.List(abi.ToolDefinition) = undefined;
    };
    answer.list = .of(definitions() catch outOfMemory());
    return &answer.list;
}

fn definitions() Allocator.Error![]const abi.ToolDefinition {
    const all = try arena.alloc(abi.ToolDefinition, plugin.tools.len);
    for (plugin.tools, all) |tool, *definition| definition.* = try abi.definition(arena, tool);
    return all;
}

fn callTool(name: [*]const u8, name_len: usize, arguments: [*]const u8, arguments_len: usize) callconv(.c) *const abi.Answer {
    const answer = struct {
        var result: abi.Answer = undefined;
    };
    answer.result = run(name[0..name_len], arguments[0..arguments_len]) catch outOfMemory();
    return &answer.result;
}

fn run(name: []const u8, arguments: []const u8) Allocator.Error!abi.Answer {
    var call: toolbay.Call = .{ .arena = arena };
    const output = toolbay.dispatch(&plugin.tools, &call, name, arguments) catch |err|
        return failure(abi.Answer, &call, err);
    return abi.answer(arena, output);
}

/// The memory of a result, which the host reads after the function has returned.
fn keep(comptime T: type, value: T) *const T {
    const place = struct {
        var kept: T = undefined;
    };
    place.kept = value;
    return &place.kept;
}

/// Returns a failure for the host.
fn failure(comptime Answer: type, call: *toolbay.Call, err: anyerror) Allocator.Error!Answer {
    const message = try abi.text(arena, toolbay.messageOf(call, err));
    return .failed(if (err == error.InvalidArguments) .invalid_arguments else .failed, message);
}

fn settings(given: [*]const [2]abi.List(u8), len: usize) Allocator.Error![]const toolbay.Setting {
    const copies = try arena.alloc(toolbay.Setting, len);
    for (given[0..len], copies) |from, *to| to.* = .{ .key = from[0].slice(), .value = from[1].slice() };
    return copies;
}

fn listPrompts() callconv(.c) *const abi.List(abi.PromptDefinition) {
    return keep(abi.List(abi.PromptDefinition), .of(promptDefinitions() catch outOfMemory()));
}

fn promptDefinitions() Allocator.Error![]const abi.PromptDefinition {
    const all = try arena.alloc(abi.PromptDefinition, plugin.prompts.len);
    for (plugin.prompts, all) |prompt, *definition| definition.* = try abi.promptDefinition(arena, prompt);
    return all;
}

fn getPrompt(name: [*]const u8, name_len: usize, values: [*]const [2]abi.List(u8), len: usize) callconv(.c) *const abi.PromptAnswer {
    return keep(abi.PromptAnswer, fillIn(name[0..name_len], values, len) catch outOfMemory());
}

fn fillIn(name: []const u8, values: [*]const [2]abi.List(u8), len: usize) Allocator.Error!abi.PromptAnswer {
    var call: toolbay.Call = .{ .arena = arena };
    const messages = toolbay.getPrompt(&plugin.prompts, &call, name, try settings(values, len)) catch |err|
        return failure(abi.PromptAnswer, &call, err);
    return abi.promptAnswer(arena, messages);
}

fn listResources() callconv(.c) *const abi.List(abi.ResourceDefinition) {
    return keep(abi.List(abi.ResourceDefinition), .of(resourcesThat(false, abi.ResourceDefinition, abi.resourceDefinition) catch outOfMemory()));
}

fn listTemplates() callconv(.c) *const abi.List(abi.ResourceTemplate) {
    return keep(abi.List(abi.ResourceTemplate), .of(resourcesThat(true, abi.ResourceTemplate, abi.resourceTemplate) catch outOfMemory()));
}

fn resourcesThat(are_templates: bool, comptime Definition: type, comptime lower: fn (Allocator, toolbay.Resource) Allocator.Error!Definition) Allocator.Error![]const Definition {
    var all: std.ArrayList(Definition) = .empty;
    for (plugin.resources) |resource| {
        if (toolbay.isTemplate(resource.uri) == are_templates) try all.append(arena, try lower(arena, resource));
    }
    return all.items;
}

fn readResource(uri: [*]const u8, len: usize) callconv(.c) *const abi.ResourceAnswer {
    return keep(abi.ResourceAnswer, read(uri[0..len]) catch outOfMemory());
}

fn read(uri: []const u8) Allocator.Error!abi.ResourceAnswer {
    var call: toolbay.Call = .{ .arena = arena };
    const items = toolbay.readResource(&plugin.resources, &call, uri) catch |err|
        return failure(abi.ResourceAnswer, &call, err);
    return abi.resourceAnswer(arena, items);
}

fn complete(
    kind: u32,
    name: [*]const u8,
    name_len: usize,
    argument: [*]const u8,
    argument_len: usize,
    value: [*]const u8,
    value_len: usize,
    given: [*]const [2]abi.List(u8),
    given_len: usize,
) callconv(.c) *const abi.CompletionAnswer {
    const answer = suggest(kind, name[0..name_len], argument[0..argument_len], value[0..value_len], given, given_len);
    return keep(abi.CompletionAnswer, answer catch outOfMemory());
}

fn suggest(kind: u32, name: []const u8, argument: []const u8, value: []const u8, given: [*]const [2]abi.List(u8), given_len: usize) Allocator.Error!abi.CompletionAnswer {
    var call: toolbay.Call = .{ .arena = arena, .complete = try settings(given, given_len) };
    const suggestions = toolbay.complete(&plugin.completions, &call, if (kind == 0) .prompt else .resource_template, name, argument, value) catch |err|
        return failure(abi.CompletionAnswer, &call, err);
    return abi.completionAnswer(arena, suggestions);
}
