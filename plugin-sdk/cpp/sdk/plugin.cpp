// The tools of a C++ plugin in the form of the C interface.

#include "toolbay.hpp"
#include "toolbay_offers.hpp"

namespace {

// A kind without a case is an error, regardless of the project's compiler flags.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"

// Every kind of block has types here, which `output::add` accepts.
[[maybe_unused]] constexpr void every_kind_has_a_type(toolbay_block_kind kind) {
    using namespace toolbay;
    switch (kind) {
    case TOOLBAY_BLOCK_TEXT: static_assert(detail::block<std::string>); break;
    case TOOLBAY_BLOCK_IMAGE: static_assert(detail::block<image>); break;
    case TOOLBAY_BLOCK_AUDIO: static_assert(detail::block<audio>); break;
    case TOOLBAY_BLOCK_LINK: static_assert(detail::block<link>); break;
    case TOOLBAY_BLOCK_RESOURCE: static_assert(detail::block<text_resource> && detail::block<binary_resource>); break;
    }
}

#pragma GCC diagnostic pop

toolbay_hint hint(std::optional<bool> said) {
    if (!said) return TOOLBAY_UNSAID;
    return *said ? TOOLBAY_YES : TOOLBAY_NO;
}

// Objects that live as long as the instance, because the C interface points to them.
struct entry {
    toolbay::tool tool;
    std::string input_schema = tool.run.input_schema();
    std::string output_schema = tool.run.output_schema();
    toolbay_icon icon = {.src = tool.icon.c_str(), .mime_type = nullptr, .sizes = nullptr, .theme = nullptr};
};

const char *unless_empty(const std::string &text) {
    return text.empty() ? nullptr : text.c_str();
}

toolbay_result *call(const void *context, toolbay_string arguments) {
    const entry *entry = static_cast<const struct entry *>(context);
    return entry->tool.run.call({arguments.data, arguments.size});
}

toolbay_tool lower(const entry &entry) {
    const toolbay::tool &tool = entry.tool;
    toolbay_tool lowered = {};
    lowered.name = tool.name.c_str();
    lowered.title = unless_empty(tool.title);
    lowered.description = unless_empty(tool.description);
    lowered.read_only = hint(tool.read_only);
    lowered.destructive = hint(tool.destructive);
    lowered.idempotent = hint(tool.idempotent);
    lowered.open_world = hint(tool.open_world);
    lowered.icon = tool.icon.empty() ? nullptr : &entry.icon;
    lowered.meta = unless_empty(tool.meta.text);
    lowered.input_schema = entry.input_schema.c_str();
    lowered.output_schema = unless_empty(entry.output_schema);
    lowered.call_json = call;
    lowered.context = &entry;
    return lowered;
}

// The prompts, resources and completions of a C++ plugin, in the forms of both
// interfaces. They are never destroyed: no code runs after a call.
template <typename Entry, typename Lowered>
struct table {
    std::vector<Entry> entries;
    std::vector<Lowered> lowered;

    template <typename Offered>
    static const table &of(const std::vector<Offered> &offered, Lowered (*lower)(const Entry &)) {
        auto &made = *new table;
        for (const Offered &each : offered) made.entries.emplace_back(each);
        for (const Entry &entry : made.entries) made.lowered.push_back(lower(entry));
        return made;
    }

    const Lowered *data(size_t *count) const {
        *count = lowered.size();
        return lowered.data();
    }
};

// A prompt or a resource, and the data of it that the C interface points to.
template <typename Offered>
struct text_entry {
    explicit text_entry(const Offered &from) : offered(from) {
        for (const auto &each : given) {
            arguments.push_back({each.name.c_str(), nullptr, unless_empty(each.description), each.required});
        }
        icon.src = offered.icon.c_str();
    }

    // The tables are complete before anything points to their entries, but the entries move
    // until then.
    text_entry(text_entry &&other) : text_entry(other.offered) {}

    Offered offered;
    std::vector<toolbay::detail::argument> given = offered.run.arguments();
    std::vector<toolbay_argument> arguments;
    toolbay_icon icon = {};
};

using prompt_entry = text_entry<toolbay::prompt>;
using resource_entry = text_entry<toolbay::resource>;

toolbay_result *get_prompt(const void *context, const toolbay_setting *values, size_t count) {
    return static_cast<const prompt_entry *>(context)->offered.run.call({values, count});
}

toolbay_prompt lower_prompt(const prompt_entry &entry) {
    const toolbay::prompt &prompt = entry.offered;
    toolbay_prompt lowered = {};
    lowered.name = prompt.name.c_str();
    lowered.title = unless_empty(prompt.title);
    lowered.description = unless_empty(prompt.description);
    lowered.icon = prompt.icon.empty() ? nullptr : &entry.icon;
    lowered.meta = unless_empty(prompt.meta.text);
    lowered.argument_list = entry.arguments.data();
    lowered.argument_count = entry.arguments.size();
    lowered.get_values = get_prompt;
    lowered.context = &entry;
    return lowered;
}

toolbay_result *read_resource(const void *context, const char *, const toolbay_setting *values, size_t count) {
    return static_cast<const resource_entry *>(context)->offered.run.call({values, count});
}

toolbay_resource lower_resource(const resource_entry &entry) {
    const toolbay::resource &resource = entry.offered;
    toolbay_resource lowered = {};
    lowered.uri = resource.uri.c_str();
    lowered.name = resource.name.c_str();
    lowered.title = unless_empty(resource.title);
    lowered.description = unless_empty(resource.description);
    lowered.mime_type = unless_empty(resource.mime_type);
    lowered.size = resource.size ? &*resource.size : nullptr;
    lowered.audience = static_cast<unsigned>(resource.audience);
    lowered.priority = resource.priority ? &*resource.priority : nullptr;
    lowered.last_modified = unless_empty(resource.last_modified);
    lowered.icon = resource.icon.empty() ? nullptr : &entry.icon;
    lowered.meta = unless_empty(resource.meta.text);
    lowered.argument_list = entry.arguments.data();
    lowered.argument_count = entry.arguments.size();
    lowered.read_values = read_resource;
    lowered.context = &entry;
    return lowered;
}

toolbay_result *complete(const toolbay_typed *typed) {
    toolbay::given given;
    for (const toolbay_setting &each : std::span(typed->given, typed->given_count)) {
        given.emplace(toolbay::detail::text(each.key), toolbay::detail::text(each.value));
    }
    return static_cast<const toolbay::completion *>(typed->context)->run.call(typed->value, given);
}

toolbay_completion lower_completion(const toolbay::completion &completion) {
    toolbay_completion lowered = {};
    lowered.prompt = unless_empty(completion.prompt);
    lowered.resource = unless_empty(completion.resource);
    lowered.argument = completion.argument.c_str();
    lowered.complete = complete;
    lowered.context = &completion;
    return lowered;
}

} // namespace

// A plugin that does not define one of these functions offers no such items.
namespace toolbay {

[[gnu::weak]] std::vector<tool> tools() {
    return {};
}

[[gnu::weak]] std::vector<prompt> prompts() {
    return {};
}

[[gnu::weak]] std::vector<resource> resources() {
    return {};
}

[[gnu::weak]] std::vector<completion> completions() {
    return {};
}

} // namespace toolbay

extern "C" const toolbay_prompt *toolbay_prompts(size_t *count) {
    static const auto &all = table<prompt_entry, toolbay_prompt>::of(toolbay::prompts(), lower_prompt);
    return all.data(count);
}

extern "C" const toolbay_resource *toolbay_resources(size_t *count) {
    static const auto &all = table<resource_entry, toolbay_resource>::of(toolbay::resources(), lower_resource);
    return all.data(count);
}

extern "C" const toolbay_completion *toolbay_completions(size_t *count) {
    static const auto &all =
        table<toolbay::completion, toolbay_completion>::of(toolbay::completions(), lower_completion);
    return all.data(count);
}

extern "C" const toolbay_tool *toolbay_plugin(size_t *count) {
    // Never destroyed: no code runs after a call.
    static const auto &entries = *new std::vector<entry>([] {
        std::vector<entry> entries;
        for (toolbay::tool &tool : toolbay::tools()) entries.push_back({.tool = std::move(tool)});
        return entries;
    }());
    static const auto &lowered = *new std::vector<toolbay_tool>([] {
        std::vector<toolbay_tool> lowered;
        for (const entry &entry : entries) lowered.push_back(lower(entry));
        return lowered;
    }());
    *count = lowered.size();
    return lowered.data();
}
