// The tools of a C++ plugin as the C interface wants them.

#include "toolbay.hpp"

namespace {

// A kind without a case is an error, whatever the project asks of its compiler.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"

// Every kind of block has types here, and `output::add` takes them.
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

// What lives as long as the instance, because the C interface points into it.
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

} // namespace

extern "C" const toolbay_tool *toolbay_plugin(size_t *count) {
    // Never destroyed: nothing runs after a call.
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
