//! Tests of the SDK. From this folder:
//!
//!     python -m ziglang test --dep toolbay -Mroot=sdk.zig -Mtoolbay=../sdk/toolbay.zig

const std = @import("std");
const toolbay = @import("toolbay");
const call = toolbay.testing.call;
const equal = std.testing.expectEqualStrings;

const Place = struct {
    latitude: f64,
    label: ?[]const u8 = null,

    pub const docs = .{ .latitude = .{ .minimum = -90, .maximum = 90.5 } };
};

const All = struct {
    yes: bool = false,
    tiny: i8,
    port: u16 = 8080,
    number: i32,
    big: i64,
    huge: u64,
    small: f32,
    in: enum { celsius, fahrenheit } = .celsius,
    text: []const u8,
    any: std.json.Value,
    or_null: ?i32,
    place: Place,
    tags: []const []const u8,
    pair: [2]i64,
    shape: union(enum) { circle: struct { radius: f64 }, dot },

    pub const docs = .{
        .yes = "A \"boolean\".",
        .number = .{ .minimum = 1, .maximum = 100 },
        .text = .{ .title = "Text", .description = "A text.", .min_length = 1, .pattern = "^a" },
        .tags = .{ .description = "Tags.", .max_length = 3 },
    };
};

const required =
    \\"tiny":-128,"number":7,"big":-9223372036854775808,"huge":18446744073709551615,"small":0.5,
    \\"text":"a\u0000é","any":{"k":[null,1.5]},"or_null":null,"place":{"latitude":1},"tags":["x","y"],"pair":[1,2],
    \\"shape":{"circle":{"radius":2}}
;

fn giveBack(args: All) All {
    return args;
}

fn everything(context: *toolbay.Call) !toolbay.Output {
    const content = try context.arena.dupe(toolbay.Content, &.{
        .{ .text = .{ .text = "text 1", .audience = &.{.user}, .priority = 0.5, .last_modified = "2026-01-12T15:00:58Z" } },
        .{ .image = .{ .data = "png" } },
        .{ .audio = .{ .data = "wav" } },
        .{ .link = .{ .uri = "https://example.com/a", .name = "a", .size = 7 } },
        .{ .text_resource = .{ .uri = "note:1", .text = "a note" } },
        .{ .binary_resource = .{ .uri = "note:2", .data = &.{ 0, 1 } } },
    });
    return .{ .content = content, .structured = "[1]", .meta = "{}" };
}

fn both() struct { Place, toolbay.Image, []const u8 } {
    return .{ .{ .latitude = 1 }, .{ .data = "png" }, "text" };
}

fn ask(context: *toolbay.Call) ![]const u8 {
    context.log(.warning, "{d} settings", .{(try context.settings()).len});
    context.progress(0.5, .{ .message = "half" });
    return context.print("{s} {any} {}", .{ context.config("b").?, context.config("c"), context.cancelled() });
}

fn fail(context: *toolbay.Call, args: Place) !?[]const u8 {
    if (args.latitude > 90) return context.invalid("no latitude is {d}", .{args.latitude});
    if (args.latitude < -90) return context.fail("no luck", .{});
    if (args.latitude == 0) return error.OnTheEquator;
    return if (args.latitude > 0) "north" else null;
}

fn nothing() void {}

// Questions of every kind.

const Colour = enum { red, blue };

const Order = struct {
    name: []const u8,
    in: Colour,
    mail: ?[]const u8 = null,
    count: u8 = 1,
    gift: bool,
    extras: []const Colour = &.{},

    pub const docs = .{
        .name = .{ .title = "Name", .description = "Who orders.", .min_length = 1, .max_length = 9 },
        .mail = .{ .format = "email" },
        .count = .{ .minimum = 1, .maximum = 10 },
    };
};

fn order(context: *toolbay.Call) ![]const u8 {
    const answer = try context.ask(toolbay.Form(Order){ .key = "order", .message = "Which?", .optional = true });
    return switch (answer) {
        .accepted => |fields| context.print("{s} {t} {d} {} {d}", .{ fields.name, fields.in, fields.count, fields.gift, fields.extras.len }),
        .declined, .cancelled => @tagName(answer),
        .unsupported => |why| why,
    };
}

fn askAll(context: *toolbay.Call) ![]const u8 {
    const visited, const folders, const one, const more = try context.askAll(.{
        toolbay.Visit{ .key = "visit", .message = "Sign in.", .url = "https://example.com" },
        toolbay.Roots{ .key = "roots" },
        toolbay.Sampling{ .key = "one", .text = "Write.", .max_tokens = 5 },
        toolbay.Sampling{
            .key = "more",
            .messages = &.{ .{ .role = .user, .text = "Hi." }, .{ .role = .assistant, .text = "Yes?" } },
            .system = "Be brief.",
            .max_tokens = 5,
            .more = "{\"temperature\":0.5,\"maxTokens\":7}",
        },
    });
    if (visited != .accepted) return "not visited";
    const roots = folders.accepted;
    return context.print("{d} {s} {s}, {s} {s}, {s}", .{
        roots.len, roots[0].uri, roots[1].name.?, one.accepted.text, one.accepted.model.?, more.accepted.text,
    });
}

fn badMore(context: *toolbay.Call) !void {
    _ = try context.ask(toolbay.Sampling{ .key = "bad", .max_tokens = 5, .more = "[]" });
}

fn touch(context: *toolbay.Call) void {
    context.resourceUpdated("game://rules");
    context.resourceUpdated("game://cards/1");
}

// Prompts.

const Review = struct {
    code: []const u8,
    text: ?[]const u8 = null,
    lines: ?i32 = null,
    strict: bool = false,
    in: Colour = .red,

    pub const docs = .{ .code = .{ .title = "Code", .description = "The code." }, .strict = "Whether to be strict." };
};

fn review(context: *toolbay.Call, args: Review) ![]const u8 {
    if (std.mem.eql(u8, args.code, " ")) return context.invalid("there is no code", .{});
    return context.print("{s} {s} {d} {} {t}", .{ args.code, args.text orelse "-", args.lines orelse 0, args.strict, args.in });
}

fn riddle(context: *toolbay.Call) !toolbay.Messages {
    return .{
        .messages = try context.arena.dupe(toolbay.Message, &.{
            .user(try context.print("Ask me {s}.", .{"a riddle"})),
            .assistant("What has keys but no locks?"),
            .assistant(toolbay.Image{ .data = "png" }),
        }),
        .description = "A game that has begun",
        .meta = "{\"example.com/k\":1}",
    };
}

fn several() struct { []const u8, toolbay.Image } {
    return .{ "look", .{ .data = "png" } };
}

const prompts = [_]toolbay.Prompt{
    .{ .name = "review", .description = "Reviews code.", .run = .of(review) },
    .{ .name = "riddle", .title = "Riddle", .description = "", .run = .of(riddle) },
    .{ .name = "several", .description = "", .run = .of(several) },
};

// Resources.

fn rules() []const u8 {
    return "There are none.";
}

const Card = struct { number: i32 };

fn card(context: *toolbay.Call, variables: Card) !?[]const toolbay.Item {
    if (variables.number < 0) return context.fail("no card is negative", .{});
    if (variables.number > 9) return null;
    return try context.arena.dupe(toolbay.Item, &.{
        .{ .content = .{ .text = try context.print("{d}", .{variables.number}) }, .meta = "{\"example.com/k\":1}" },
        .{ .content = .{ .data = &.{ 0, 1 } }, .mime_type = "image/png", .uri = try context.print("{s}/picture", .{context.uri}) },
    });
}

fn named(variables: struct { suit: []const u8 }) []const u8 {
    return variables.suit;
}

fn nowhere() Place {
    return .{ .latitude = 1 };
}

fn file(variables: struct { path: []const u8 }) []const u8 {
    return variables.path;
}

const resources = [_]toolbay.Resource{
    .{ .uri = "game://{suit}", .name = "named", .run = .of(named) },
    .{
        .uri = "game://rules",
        .name = "rules",
        .title = "Rules",
        .mime_type = "text/plain",
        .run = .of(rules),
        .size = 15,
        .audience = &.{.user},
        .priority = 0.5,
        .last_modified = "2026-01-12T15:00:58Z",
        .icons = &.{.{ .src = "data:image/png;base64," }},
        .meta = "{\"example.com/k\":1}",
    },
    .{ .uri = "game://cards/{number}", .name = "card", .mime_type = "text/plain", .run = .of(card), .priority = 0.5 },
    .{ .uri = "game://nowhere", .name = "nowhere", .run = .of(nowhere) },
    .{ .uri = "files://{+path}", .name = "file", .run = .of(file) },
};

// Completions.

fn suggest(context: *toolbay.Call, typed: []const u8) !toolbay.Suggestions {
    if (context.given("code")) |code| return context.fail("{s}", .{code});
    return .{ .values = try context.beginningWith(typed, &.{ "Python", "Ruby", "Rust" }), .total = 7, .more = true };
}

fn suits(_: []const u8) []const []const u8 {
    return &.{ "spades", "hearts" };
}

const completions = [_]toolbay.Completion{
    .{ .prompt = "review", .argument = "text", .run = .of(suggest) },
    .{ .resource = "game://{suit}", .argument = "suit", .run = .of(suits) },
};

const tools = [_]toolbay.Tool{
    .{ .name = "give_back", .description = "", .run = .of(giveBack) },
    .{ .name = "everything", .description = "", .run = .of(everything) },
    .{ .name = "both", .description = "", .run = .of(both) },
    .{ .name = "ask", .description = "", .run = .of(ask) },
    .{ .name = "fail", .description = "", .run = .of(fail) },
    .{ .name = "nothing", .description = "", .run = .of(nothing) },
    .{ .name = "order", .description = "", .run = .of(order) },
    .{ .name = "ask_all", .description = "", .run = .of(askAll) },
    .{ .name = "bad_more", .description = "", .run = .of(badMore) },
    .{ .name = "touch", .description = "", .run = .of(touch) },
};

fn parsed(json: []const u8) !std.json.Value {
    return std.json.parseFromSliceLeaky(std.json.Value, std.heap.page_allocator, json, .{});
}

test "every type comes back as it went" {
    const answer = try call(&tools, "give_back", try parsed("{" ++ required ++ "}"));
    try equal(
        \\{"yes":false,"tiny":-128,"port":8080,"number":7,"big":-9223372036854775808,"huge":18446744073709551615,
    ++
        \\"small":0.5,"in":"celsius","text":"a\u0000é","any":{"k":[null,1.5]},"or_null":null,
    ++
        \\"place":{"latitude":1,"label":null},"tags":["x","y"],"pair":[1,2],"shape":{"circle":{"radius":2}}}
    , answer.structured() orelse answer.text());
}

test "what does not fit is refused" {
    const answer = try call(&tools, "fail", .{ .latitude = "x" });
    try std.testing.expect(answer == .invalid_arguments);
    try std.testing.expect(try call(&tools, "fail", .{}) == .invalid_arguments);
    try std.testing.expect(try call(&tools, "fail", .{ .latitude = 1, .other = 2 }) == .invalid_arguments);
    try equal("there is no tool `other`", (try call(&tools, "other", .{})).failed);
}

test "schemas come from types" {
    const arena = std.heap.page_allocator;
    try equal(
        \\{"type":"object","properties":{
    ++
        \\"yes":{"description":"A \"boolean\".","type":"boolean","default":false},
    ++
        \\"tiny":{"type":"integer","minimum":-128,"maximum":127},
    ++
        \\"port":{"type":"integer","minimum":0,"maximum":65535,"default":8080},
    ++
        \\"number":{"type":"integer","minimum":1,"maximum":100},
    ++
        \\"big":{"type":"integer"},"huge":{"type":"integer","minimum":0},"small":{"type":"number"},
    ++
        \\"in":{"type":"string","enum":["celsius","fahrenheit"],"default":"celsius"},
    ++
        \\"text":{"title":"Text","description":"A text.","type":"string","minLength":1,"pattern":"^a"},
    ++
        \\"any":{},"or_null":{"type":["integer","null"],"minimum":-2147483648,"maximum":2147483647},
    ++
        \\"place":{"type":"object","properties":{"latitude":{"type":"number","minimum":-90,"maximum":90.5},
    ++
        \\"label":{"type":["string","null"]}},"required":["latitude"],"additionalProperties":false},
    ++
        \\"tags":{"description":"Tags.","type":"array","items":{"type":"string"},"maxItems":3},
    ++
        \\"pair":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2},
    ++
        \\"shape":{"oneOf":[{"type":"object","properties":{"circle":{"type":"object","properties":{
    ++
        \\"radius":{"type":"number"}},"required":["radius"],"additionalProperties":false}},
    ++
        \\"required":["circle"],"additionalProperties":false},{"type":"object","properties":{"dot":{
    ++
        \\"type":"object","properties":{},"additionalProperties":false}},"required":["dot"],
    ++
        \\"additionalProperties":false}]}},
    ++
        \\"required":["tiny","number","big","huge","small","text","any","or_null","place","tags","pair","shape"],
    ++
        \\"additionalProperties":false}
    , try tools[0].run.input_schema(arena));
    try equal(
        \\{"type":"object","properties":{"latitude":{"type":"number","minimum":-90,"maximum":90.5},
    ++
        \\"label":{"type":["string","null"]}},"required":["latitude","label"],"additionalProperties":false}
    , try tools[2].run.output_schema.?(arena));
    try std.testing.expect(tools[4].run.output_schema == null);
}

test "every block is kept" {
    const output = (try call(&tools, "everything", .{})).output;
    try std.testing.expectEqual(6, output.content.len);
    try equal("note:2", output.content[5].binary_resource.uri);
    try equal("[1]", output.structured.?);
    const tuple = (try call(&tools, "both", .{})).output;
    try std.testing.expectEqual(2, tuple.content.len);
    try equal("{\"latitude\":1,\"label\":null}", tuple.structured.?);
}

test "every block crosses as the contract has it" {
    const output = (try call(&tools, "everything", .{})).output;
    const crossed = (try toolbay.abi.answer(std.heap.page_allocator, output)).value.output.content.slice();
    const kinds = [_][]const u8{ "text", "image", "audio", "resource-link", "embedded-resource", "embedded-resource" };
    // Another kind needs a block in `everything`.
    try std.testing.expectEqual(@typeInfo(toolbay.Content).@"union".field_names.len, kinds.len);
    for (kinds, crossed) |kind, content| try equal(kind, content.kind.slice());

    try equal("text 1", crossed[0].text.value.slice());
    try equal("2026-01-12T15:00:58Z", crossed[0].last_modified.value.slice());
    try std.testing.expectEqual(0.5, crossed[0].priority.value);
    try std.testing.expect(!crossed[0].data.some and !crossed[1].last_modified.some);
    try equal("png", crossed[1].data.value.slice());
    try equal("image/png", crossed[1].mime_type.value.slice());
    try std.testing.expectEqual(7, crossed[3].size.value);
    try equal("a note", crossed[4].text.value.slice());
}

test "the host answers" {
    toolbay.testing.host.configuration = &.{ .{ .key = "a", .value = "1" }, .{ .key = "b", .value = "2" } };
    toolbay.testing.host.is_cancelled = true;
    try equal("2 null true", (try call(&tools, "ask", .{})).text());
    try equal("warning: 2 settings\n", toolbay.testing.host.logged.items);
    try std.testing.expectEqual(0.5, toolbay.testing.host.done);
}

test "failures and nothing" {
    try equal("no latitude is 91", (try call(&tools, "fail", .{ .latitude = 91 })).invalid_arguments);
    try equal("no luck", (try call(&tools, "fail", .{ .latitude = -91 })).failed);
    try equal("OnTheEquator", (try call(&tools, "fail", .{ .latitude = 0 })).failed);
    try equal("north", (try call(&tools, "fail", .{ .latitude = 1 })).text());
    try std.testing.expectEqual(0, (try call(&tools, "fail", .{ .latitude = -1 })).output.content.len);
    try std.testing.expectEqual(0, (try call(&tools, "nothing", .{})).output.content.len);
}

fn filled(name: []const u8, arguments: anytype) !toolbay.testing.Outcome(toolbay.Messages) {
    return toolbay.testing.prompt(&prompts, name, arguments);
}

test "a prompt reads its arguments" {
    const whole = (try filled("review", .{ .code = "7", .text = "8", .lines = " 12 ", .strict = "true", .in = "blue" })).output;
    try std.testing.expectEqual(1, whole.messages.len);
    try std.testing.expectEqual(toolbay.Role.user, whole.messages[0].role);
    try equal("7 8 12 true blue", whole.messages[0].content.text.text);
    try equal("true - 0 false red", (try filled("review", .{ .code = "true" })).output.messages[0].content.text.text);
    try equal("`lines` must be an integer of its size, not \"many\"", (try filled("review", .{ .code = "x", .lines = "many" })).invalid_arguments);
    try equal("`in` must be one of red, blue, not \"green\"", (try filled("review", .{ .code = "x", .in = "green" })).invalid_arguments);
    try equal("`code` is missing", (try filled("review", .{})).invalid_arguments);
    try equal("there is no code", (try filled("review", .{ .code = " " })).invalid_arguments);
    try equal("there is no prompt `other`", (try filled("other", .{})).failed);
}

test "a prompt has messages" {
    const messages = (try filled("riddle", .{})).output;
    try equal("A game that has begun", messages.description.?);
    try std.testing.expectEqual(3, messages.messages.len);
    try std.testing.expectEqual(toolbay.Role.assistant, messages.messages[1].role);
    try equal("What has keys but no locks?", messages.messages[1].content.text.text);
    try std.testing.expect(messages.messages[2].content == .image);
    try std.testing.expectEqual(2, (try filled("several", .{})).output.messages.len);
    const crossed = (try toolbay.abi.promptAnswer(std.heap.page_allocator, messages)).value.output;
    try equal("What has keys but no locks?", crossed.messages.slice()[1].content.text.value.slice());
    try std.testing.expectEqual(toolbay.Role.assistant, crossed.messages.slice()[2].role);
}

test "prompts and resources are listed" {
    const arena = std.heap.page_allocator;
    const prompt = try toolbay.abi.promptDefinition(arena, prompts[0]);
    const arguments = prompt.arguments.slice();
    try std.testing.expectEqual(5, arguments.len);
    try equal("code", arguments[0].name.slice());
    try equal("Code", arguments[0].title.value.slice());
    try equal("Whether to be strict.", arguments[3].description.value.slice());
    try std.testing.expect(arguments[0].required and !arguments[1].required);
    const resource = try toolbay.abi.resourceDefinition(arena, resources[1]);
    try std.testing.expectEqual(15, resource.size.value);
    try std.testing.expectEqual(0.5, resource.priority.value);
    try equal("2026-01-12T15:00:58Z", resource.last_modified.value.slice());
    const template = try toolbay.abi.resourceTemplate(arena, resources[2]);
    try equal("game://cards/{number}", template.uri_template.slice());
    try equal("text/plain", template.mime_type.value.slice());
}

fn readAt(uri: []const u8) !toolbay.testing.Outcome([]const toolbay.Item) {
    return toolbay.testing.read(&resources, uri);
}

test "a resource is read" {
    const fixed = (try readAt("game://rules")).output;
    try equal("There are none.", fixed[0].content.text);
    try equal("game://rules", fixed[0].uri.?);
    try equal("text/plain", fixed[0].mime_type.?);
    const items = (try readAt("game://cards/7")).output;
    try std.testing.expectEqual(2, items.len);
    try equal("7", items[0].content.text);
    try equal("game://cards/7/picture", items[1].uri.?);
    try equal("image/png", items[1].mime_type.?);
    try std.testing.expectEqual(2, items[1].content.data.len);
    try equal("ace of spades", (try readAt("game://ace%20of%20spades")).output[0].content.text);
    try equal("a/b%20c", (try readAt("files://a/b%20c")).output[0].content.text);
    const json = (try readAt("game://nowhere")).output[0];
    try equal("{\"latitude\":1,\"label\":null}", json.content.text);
    try equal("application/json", json.mime_type.?);
}

test "what is not there is empty" {
    try std.testing.expectEqual(0, (try readAt("game://cards/10")).output.len);
    try std.testing.expectEqual(0, (try readAt("other://x")).output.len);
    try equal("no card is negative", (try readAt("game://cards/-1")).failed);
    try equal("`number` must be an integer of its size, not \"ace\"", (try readAt("game://cards/ace")).invalid_arguments);
}

test "a URI fits or does not" {
    const cases = [_]struct { []const u8, []const u8, ?[]const u8 }{
        .{ "notes://all", "notes://all", "" },
        .{ "notes://all", "notes://al", null },
        .{ "notes://all", "notes://all/", null },
        .{ "notes://{id}", "notes://7", "id=7 " },
        .{ "notes://{id}", "notes://", null },
        .{ "notes://{id}", "notes://a/b", null },
        .{ "notes://{+path}", "notes://a/b?c", "path=a/b?c " },
        .{ "notes://{+path}", "notes://a%20b", "path=a%20b " },
        .{ "notes://{id}", "notes://a%20b", "id=a b " },
        .{ "notes://{id}", "notes://a%2Fb", "id=a/b " },
        .{ "notes://{id}", "notes://a%2", null },
        .{ "notes://{id}", "notes://a%", null },
        .{ "notes://{id}", "notes://a%ff", null },
        .{ "test://template/{id}/data", "test://template/123/data", "id=123 " },
        .{ "test://template/{id}/data", "test://template//data", null },
        .{ "test://template/{id}/data", "test://template/1/date", null },
        .{ "a:{x}-{y}", "a:1-2-3", "x=1 y=2-3 " },
        .{ "a:{x}{y}", "a:12", "x=1 y=2 " },
        .{ "a:{x}{y}", "a:éé", "x=é y=é " },
        .{ "a:{x}", "a:é", "x=é " },
        .{ "a:{x", "a:1", null },
        .{ "a:{x", "a:{x", null },
    };
    const arena = std.heap.page_allocator;
    for (cases) |case| {
        const template, const uri, const wanted = case;
        const values = try toolbay.matchUri(arena, template, uri) orelse {
            try std.testing.expectEqual(null, wanted);
            continue;
        };
        var all: std.ArrayList(u8) = .empty;
        for (values) |value| try all.appendSlice(arena, try arena.print("{s}={s} ", .{ value.key, value.value }));
        try equal(wanted orelse "no fit", all.items);
    }
}

test "an argument is completed" {
    const complete = toolbay.testing.complete;
    const suggestions = (try complete(&completions, "review", "text", "r", .{})).output;
    try std.testing.expectEqual(2, suggestions.values.len);
    try equal("Rust", suggestions.values[1]);
    try std.testing.expect(suggestions.total == 7 and suggestions.more);
    try equal("given", (try complete(&completions, "review", "text", "", .{ .code = "given" })).failed);
    try equal("hearts", (try complete(&completions, "game://{suit}", "suit", "", .{})).output.values[1]);
    try std.testing.expectEqual(0, (try complete(&completions, "review", "code", "", .{})).output.values.len);
}

const suiting: toolbay.CompletionRun = .of(suits);
const twice = [_]toolbay.Completion{ completions[0], completions[0] };
const mistaken = .{
    .{ &prompts, &resources, &completions, null },
    .{ &[_]toolbay.Prompt{ prompts[0], prompts[0] }, &.{}, &.{}, "two prompts have the name `review`" },
    .{ &.{}, &[_]toolbay.Resource{ resources[1], resources[1] }, &.{}, "two resources have the URI `game://rules`" },
    .{ &prompts, &.{}, &twice, "two completions are for the same argument `text`" },
    .{ &.{}, &[_]toolbay.Resource{.{ .uri = "a:{x}", .name = "a", .run = .of(named) }}, &.{}, "resource `a:{x}`: its URI has no variable {suit}" },
    .{ &prompts, &.{}, &[_]toolbay.Completion{.{ .argument = "y", .run = suiting }}, "the completion of `y` needs either a prompt or a resource" },
    .{ &prompts, &.{}, &[_]toolbay.Completion{.{ .prompt = "p", .argument = "y", .run = suiting }}, "a completion is for the prompt `p`, which does not exist" },
    .{ &prompts, &.{}, &[_]toolbay.Completion{.{ .prompt = "review", .argument = "y", .run = suiting }}, "a completion is for the argument `y` of the prompt `review`, which has no such argument" },
    .{ &prompts, &resources, &[_]toolbay.Completion{.{ .resource = "game://{suit}", .argument = "y", .run = suiting }}, "a completion is for the argument `y` of the resource `game://{suit}`, which has no such argument" },
};

test "mistakes are found by the compiler" {
    inline for (mistaken) |case| {
        const why = comptime toolbay.mistake(case[0], case[1], case[2]);
        const wanted: ?[]const u8 = case[3];
        try equal(wanted orelse "nothing", why orelse "nothing");
    }
}

test "a form is asked" {
    const host = toolbay.testing.host;
    host.responses = &.{};
    try equal(
        "the test has no answer to the question `order`: add it to toolbay.testing.host.responses",
        (try call(&tools, "order", .{})).failed,
    );
    try equal(
        \\{"message":"Which?","requestedSchema":{"type":"object","properties":{
    ++
        \\"name":{"title":"Name","description":"Who orders.","type":"string","minLength":1,"maxLength":9},
    ++
        \\"in":{"type":"string","enum":["red","blue"]},
    ++
        \\"mail":{"type":"string","format":"email"},
    ++
        \\"count":{"type":"integer","minimum":1,"maximum":10,"default":1},
    ++
        \\"gift":{"type":"boolean"},
    ++
        \\"extras":{"type":"array","items":{"type":"string","enum":["red","blue"]},"default":[]}},
    ++
        \\"required":["name","in","gift"]}}
    , host.asked("order").?);
    const cases = [_]struct { ?[]const u8, []const u8 }{
        .{ "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\",\"in\":\"blue\",\"gift\":true,\"extras\":[\"red\"]}}", "Ada blue 1 true 1" },
        .{ "{\"action\":\"decline\"}", "declined" },
        .{ "{\"action\":\"cancel\"}", "cancelled" },
        .{ null, "the client does not support it" },
        .{ "{\"action\":\"accept\"}", "the answer to the question `order`: MissingField" },
        .{ "{}", "the answer to the question `order`: its `action` must be accept, decline or cancel" },
    };
    for (cases) |case| {
        host.responses = &.{.{ .key = "order", .result = case[0] }};
        try equal(case[1], (try call(&tools, "order", .{})).text());
    }
}

test "several questions are asked at once" {
    const host = toolbay.testing.host;
    host.responses = &.{
        .{ .key = "visit", .result = "{\"action\":\"accept\"}" },
        .{ .key = "roots", .result = "{\"roots\":[{\"uri\":\"file:///w\"},{\"uri\":\"file:///v\",\"name\":\"v\"}]}" },
        .{ .key = "one", .result = "{\"model\":\"m\",\"content\":{\"type\":\"text\",\"text\":\"Drip.\"}}" },
        .{ .key = "more", .result = "{\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"text\",\"text\":\"y\"}]}" },
    };
    try equal("2 file:///w v, Drip. m, x\ny", (try call(&tools, "ask_all", .{})).text());
    try equal("{\"message\":\"Sign in.\",\"url\":\"https://example.com\"}", host.asked("visit").?);
    try equal("{}", host.asked("roots").?);
    try equal(
        \\{"messages":[{"role":"user","content":{"type":"text","text":"Write."}}],"maxTokens":5}
    , host.asked("one").?);
    try equal(
        \\{"messages":[{"role":"user","content":{"type":"text","text":"Hi."}},
    ++
        \\{"role":"assistant","content":{"type":"text","text":"Yes?"}}],
    ++
        \\"systemPrompt":"Be brief.","maxTokens":7,"temperature":0.5}
    , host.asked("more").?);
    try std.testing.expectEqual(null, host.asked("other"));
    try equal("the question `bad`: `more` must be a JSON object", (try call(&tools, "bad_more", .{})).failed);
}

test "updates are reported" {
    _ = try call(&tools, "touch", .{});
    try equal("game://rules\ngame://cards/1\n", toolbay.testing.host.updated.items);
}
