// One tool for each guarantee of the contract, which the project's tests
// call.

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "toolbay/toolbay.hpp"
#include "toolbay/toolbay_ask.hpp"
#include "toolbay/toolbay_offers.hpp"

namespace {

struct Text {
    toolbay::required<std::string, "What to say."> text;
};

std::string echo(const Text &args) {
    return args.text;
}

void boom() {
    throw std::runtime_error("kaboom: 42");
}

toolbay::result<void> refuse() {
    return toolbay::invalid("not today");
}

std::pair<toolbay::image, std::string> picture() {
    return {{.data = {0x89, 'P', 'N', 'G', 0x0D, 0x0A, 0x1A, 0x0A}}, "a picture"};
}

struct Report {
    toolbay::required<std::optional<std::string>, "The units that the operator set."> units;
    toolbay::required<bool, "Whether the client gave up."> cancelled;
};

Report report() {
    toolbay::info("working");
    toolbay::progress(1, 2);
    toolbay::progress(2, 2);
    return {.units = toolbay::config("units"), .cancelled = toolbay::cancelled()};
}

struct Name {
    toolbay::required<std::string, "The name."> name;
};

toolbay::result<std::string> ask() {
    const auto answer = toolbay::ask(toolbay::form<Name>{.key = "name", .message = "Which name?", .optional = true});
    if (answer) return "Hello, " + answer->name + ".";
    switch (answer.error().why) {
    case toolbay::refusal::declined: return "declined";
    case toolbay::refusal::cancelled: return "cancelled";
    case toolbay::refusal::unsupported: return "nobody to ask";
    case toolbay::refusal::not_asked: break;
    }
    return toolbay::failed("{}", answer.error().message);
}

std::string touch() {
    toolbay::resource_updated("cpp://about");
    return "touched";
}

struct Greeting {
    toolbay::required<std::string, "Who to greet."> name;
    toolbay::required<std::optional<std::string>, "How to greet."> style;
};

std::string greeting(const Greeting &args) {
    if (!args.style) return std::format("Greet {}.", args.name);
    return std::format("Greet {} in a {} style.", args.name, *args.style);
}

toolbay::suggestions styles(std::string_view typed) {
    return toolbay::beginning_with(typed, {"formal", "friendly", "funny"});
}

std::string about() {
    return "A plugin in cpp.";
}

struct Note {
    std::string id;
};

std::optional<std::string> note(const Note &note) {
    if (note.id == "none") return {};
    return "Note " + note.id + ".";
}

} // namespace

std::vector<toolbay::tool> toolbay::tools() {
    return {
        {.name = "cpp_echo", .description = "Says a text back.", .run = echo, .read_only = true},
        {.name = "cpp_boom", .description = "Throws.", .run = boom},
        {.name = "cpp_refuse", .description = "Refuses.", .run = refuse},
        {.name = "cpp_image", .description = "Shows a picture.", .run = picture},
        {
            .name = "cpp_report",
            .description = "Logs, tells its progress and reads its configuration.",
            .run = report,
        },
        {.name = "cpp_ask", .description = "Asks for a name.", .run = ::ask},
        {.name = "cpp_touch", .description = "Reports a change of a resource.", .run = touch},
    };
}

TOOLBAY_PROMPTS({.name = "cpp_greeting", .description = "Greets somebody.", .run = greeting})

TOOLBAY_COMPLETIONS({.prompt = "cpp_greeting", .argument = "style", .run = styles})

TOOLBAY_RESOURCES(
    {.uri = "cpp://about", .name = "about", .mime_type = "text/plain", .run = about},
    {.uri = "cpp://notes/{id}", .name = "note", .mime_type = "text/plain", .run = note})
