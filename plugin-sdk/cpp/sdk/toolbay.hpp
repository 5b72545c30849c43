// Toolbay plugins in C++: a plain function becomes an MCP tool.
//
//     struct Greet {
//         toolbay::required<std::string, "Who to greet."> name;
//         toolbay::optional<bool, "Whether to shout."> excited = false;
//     };
//
//     std::string greet(const Greet &args) {
//         return (args.excited ? "HELLO, " : "Hello, ") + args.name;
//     }
//
//     std::vector<toolbay::tool> toolbay::tools() {
//         return {
//             {.name = "greet", .description = "Greets somebody by name.", .run = greet, .read_only = true},
//         };
//     }
//
// The schema of the arguments is generated from the struct that the function
// takes, the schema of the result from the struct that it returns. Every call runs
// in its own instance: a global does not outlive the call.
//
// Prompts, resources and completions are in toolbay_offers.hpp, and questions to the
// caller in toolbay_ask.hpp.
#pragma once

#include <cstdint>
#include <expected>
#include <format>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "c/toolbay.h"
#include "toolbay_fields.hpp"
#include "toolbay_json.hpp"

namespace toolbay {

// ------------------------------------------------------------------ failures

// The reason why a call failed. The model reads the message: state the problem and
// how to solve it.
struct failure {
    std::string message;
    bool arguments_are_to_blame = false;
};

// The return type of a tool that can fail.
template <typename T>
using result = std::expected<T, failure>;

// Returns a failure for arguments that match the schema but make no sense: return toolbay::invalid("...").
template <typename... Values>
std::unexpected<failure> invalid(std::format_string<Values...> format, Values &&...values) {
    return std::unexpected(failure{std::format(format, std::forward<Values>(values)...), true});
}

// Returns a failure of the tool: return toolbay::failed("...").
template <typename... Values>
std::unexpected<failure> failed(std::format_string<Values...> format, Values &&...values) {
    return std::unexpected(failure{std::format(format, std::forward<Values>(values)...), false});
}

// ------------------------------------------------------------------- results

// Raw bytes, such as those of an image.
using bytes = std::vector<std::uint8_t>;

struct image {
    bytes data;
    std::string mime_type = "image/png";
};

struct audio {
    bytes data;
    std::string mime_type = "audio/wav";
};

// A link to a resource that the client can fetch.
struct link {
    std::string uri;
    std::string name;
    std::optional<std::string> title = {};
    std::optional<std::string> description = {};
    std::optional<std::string> mime_type = {};
    std::optional<std::uint64_t> size = {};
};

// A resource whose text or bytes are part of the result.
struct text_resource {
    std::string uri;
    std::string text;
    std::optional<std::string> mime_type = {};
};

struct binary_resource {
    std::string uri;
    bytes data;
    std::optional<std::string> mime_type = {};
};

// The audience of a block.
enum class audience : unsigned { everyone = 0, user = TOOLBAY_FOR_USER, assistant = TOOLBAY_FOR_ASSISTANT };

// A result built in steps, if no return type suffices: toolbay::output().add("a").add(image).
class output {
  public:
    output() : result_(toolbay_output()) {}

    output &&add(std::string_view text) && {
        toolbay_add_text(result_, detail::lend(text));
        return std::move(*this);
    }

    output &&add(const image &image) && {
        toolbay_add_image(result_, image.data.data(), image.data.size(), image.mime_type.c_str());
        return std::move(*this);
    }

    output &&add(const audio &audio) && {
        toolbay_add_audio(result_, audio.data.data(), audio.data.size(), audio.mime_type.c_str());
        return std::move(*this);
    }

    output &&add(const link &link) && {
        toolbay_add_link(result_, {link.uri.c_str(), link.name.c_str(), text(link.title), text(link.description),
                                   text(link.mime_type), link.size ? &*link.size : nullptr});
        return std::move(*this);
    }

    output &&add(const text_resource &resource) && {
        toolbay_add_text_resource(result_, or_none(resource.uri), detail::lend(resource.text), text(resource.mime_type));
        return std::move(*this);
    }

    output &&add(const binary_resource &resource) && {
        toolbay_add_binary_resource(result_, or_none(resource.uri), resource.data.data(), resource.data.size(),
                                    text(resource.mime_type));
        return std::move(*this);
    }

    // For a prompt: adds a message of the user or of the model: a text or another block.
    output &&user(const auto &content) && {
        return std::move(*this).add(content);
    }

    output &&assistant(const auto &content) && {
        toolbay_set_role(std::move(*this).add(content).result_, TOOLBAY_ASSISTANT);
        return std::move(*this);
    }

    // For a prompt: sets its purpose, if the arguments make it more specific than the definition.
    output &&description(const std::string &text) && {
        toolbay_set_description(result_, text.c_str());
        return std::move(*this);
    }

    // For a resource: sets the _meta of the last item, which is an object.
    template <typename T>
    output &&item_meta(const T &value) && {
        toolbay_set_item_meta(result_, detail::lend(to_json(value).text));
        return std::move(*this);
    }

    // Sets the audience of the last block and its importance, from 0 to 1.
    output &&annotate(audience audience, std::optional<double> priority = {}) && {
        toolbay_annotate(result_, static_cast<unsigned>(audience), priority.value_or(-1));
        return std::move(*this);
    }

    // Sets the time when the last block's content was last modified, in ISO 8601.
    output &&last_modified(const std::string &time) && {
        toolbay_set_last_modified(result_, time.c_str());
        return std::move(*this);
    }

    // Sets the structured content.
    template <typename T>
    output &&structured(const T &value) && {
        toolbay_set_structured_json(result_, detail::lend(to_json(value).text));
        return std::move(*this);
    }

    // Sets the result's _meta, which is an object.
    template <typename T>
    output &&meta(const T &value) && {
        toolbay_set_meta(result_, detail::lend(to_json(value).text));
        return std::move(*this);
    }

    // Returns the result in the form of the C interface.
    toolbay_result *get() const {
        return result_;
    }

  private:
    static const char *text(const std::optional<std::string> &value) {
        return value ? value->c_str() : nullptr;
    }

    static const char *or_none(const std::string &value) {
        return value.empty() ? nullptr : value.c_str();
    }

    toolbay_result *result_;
};

namespace detail {

// The types that can become a block.
template <typename T>
concept block = requires(const T &value) { output().add(value); };

template <typename T>
constexpr bool is_expected = false;
template <typename T>
constexpr bool is_expected<std::expected<T, failure>> = true;

// The result of calling a function. `add` adds the returned value to an output.
template <typename Function, typename Add>
toolbay_result *finish(const Function &function, const Add &add) {
    using Result = decltype(function());
    if constexpr (std::is_void_v<Result>) {
        function();
        return toolbay_output();
    } else if constexpr (is_expected<Result>) {
        const Result result = function();
        if (!result) {
            const failure &failure = result.error();
            return (failure.arguments_are_to_blame ? toolbay_invalid : toolbay_failed)("%s", failure.message.c_str());
        }
        if constexpr (std::is_void_v<typename Result::value_type>) {
            return toolbay_output();
        } else {
            return add(output(), *result).get();
        }
    } else {
        return add(output(), function()).get();
    }
}

} // namespace detail

// ------------------------------------------------------------------ the host

// Writes to the host's log: toolbay::log(TOOLBAY_INFO, "{} bytes", n). debug,
// info, notice, warning and error have a function each.
template <typename... Values>
void log(toolbay_level level, std::format_string<Values...> format, Values &&...values) {
    toolbay_log(level, "%s", std::format(format, std::forward<Values>(values)...).c_str());
}

template <typename... Values>
void debug(std::format_string<Values...> format, Values &&...values) {
    log(TOOLBAY_DEBUG, format, std::forward<Values>(values)...);
}

template <typename... Values>
void info(std::format_string<Values...> format, Values &&...values) {
    log(TOOLBAY_INFO, format, std::forward<Values>(values)...);
}

template <typename... Values>
void notice(std::format_string<Values...> format, Values &&...values) {
    log(TOOLBAY_NOTICE, format, std::forward<Values>(values)...);
}

template <typename... Values>
void warning(std::format_string<Values...> format, Values &&...values) {
    log(TOOLBAY_WARNING, format, std::forward<Values>(values)...);
}

template <typename... Values>
void error(std::format_string<Values...> format, Values &&...values) {
    log(TOOLBAY_ERROR, format, std::forward<Values>(values)...);
}

// Reports the progress of the call to the client; `progress` must increase from one report to the next.
inline void progress(double progress, std::optional<double> total = {}, const std::string &message = {}) {
    toolbay_progress(progress, total.value_or(0), message.empty() ? nullptr : message.c_str());
}

// Returns whether the client has cancelled the call.
inline bool cancelled() {
    return toolbay_cancelled();
}

// Returns the value of a key in [config] of the operator's grant: a string
// unchanged, any other value as JSON.
inline std::optional<std::string> config(const std::string &key) {
    const char *value = toolbay_config(key.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
}

// Returns every key and value of [config].
inline std::map<std::string, std::string> config() {
    std::size_t count = 0;
    const toolbay_setting *settings = toolbay_config_all(&count);
    std::map<std::string, std::string> all;
    for (const toolbay_setting &setting : std::span(settings, count)) {
        all.emplace(detail::text(setting.key), detail::text(setting.value));
    }
    return all;
}

// --------------------------------------------------------------------- tools

// The function of a tool: any function or lambda that takes one struct, or
// nothing, and returns
//
//   - text: std::string, std::string_view or const char *,
//   - structured content: a struct, which also gives the output schema,
//   - image, audio, link, text_resource, binary_resource or output,
//   - several of these: std::pair or std::tuple,
//   - nothing: void, or a std::optional of the above that is empty,
//   - any of these or a failure: toolbay::result<...>.
class handler {
  public:
    template <typename Function>
        requires(!std::is_same_v<std::remove_cvref_t<Function>, handler>)
    handler(Function function) : handler(std::function(std::move(function)), 0) {}

    std::string input_schema() const {
        return input_schema_();
    }

    // Empty if the tool declares no structured content.
    std::string output_schema() const {
        return output_schema_();
    }

    toolbay_result *call(std::string_view arguments) const {
        return call_(arguments);
    }

  private:
    template <typename Result, typename Arguments>
    handler(std::function<Result(Arguments)> function, int)
        : input_schema_(detail::arguments_schema<std::remove_cvref_t<Arguments>>),
          output_schema_(output_schema_of<Result>),
          call_([function = std::move(function)](std::string_view text) {
              std::remove_cvref_t<Arguments> arguments{};
              const std::string problem = detail::read_arguments(text, arguments);
              if (!problem.empty()) return toolbay_invalid("%s", problem.c_str());
              return finish([&] { return function(arguments); });
          }) {}

    template <typename Result>
    handler(std::function<Result()> function, int)
        : input_schema_(detail::no_arguments_schema), output_schema_(output_schema_of<Result>),
          call_([function = std::move(function)](std::string_view) { return finish(function); }) {}

    template <typename T>
    static constexpr bool is_structured = detail::object<T> && !detail::block<T>;

    template <typename T>
    static std::string output_schema_of() {
        if constexpr (std::is_void_v<T>) {
            return {};
        } else if constexpr (detail::is_expected<T>) {
            return output_schema_of<typename T::value_type>();
        } else if constexpr (detail::is_tuple<T>) {
            return []<std::size_t... I>(std::index_sequence<I...>) {
                std::string schema;
                ((schema.empty() ? void(schema = output_schema_of<std::tuple_element_t<I, T>>()) : void()), ...);
                return schema;
            }(std::make_index_sequence<std::tuple_size_v<T>>());
        } else if constexpr (is_structured<T>) {
            return detail::result_schema<T>();
        } else {
            return {}; // not even of an optional: declared content must always be present
        }
    }

    template <typename T>
    static output add(output &&to, const T &value) {
        if constexpr (std::is_same_v<T, output>) {
            return value;
        } else if constexpr (detail::is_optional<T>) {
            return value ? add(std::move(to), *value) : std::move(to);
        } else if constexpr (detail::is_tuple<T>) {
            std::apply([&](const auto &...each) { ((to = add(std::move(to), each)), ...); }, value);
            return std::move(to);
        } else if constexpr (is_structured<T>) {
            return std::move(to).structured(value);
        } else {
            return std::move(to).add(value);
        }
    }

    template <typename Function>
    static toolbay_result *finish(const Function &function) {
        return detail::finish(function, [](output &&to, const auto &value) { return add(std::move(to), value); });
    }

    std::function<std::string()> input_schema_, output_schema_;
    std::function<toolbay_result *(std::string_view)> call_;
};

// One tool.
struct tool {
    std::string name;        // the name that clients call: A-Z a-z 0-9 _ - .
    std::string title = {};  // a display name
    std::string description; // what it does and when to use it, written for the model
    handler run;

    // Hints by which the client decides whether to ask its user first.
    // Clients assume the worst if a hint is missing.
    std::optional<bool> read_only = {};   // it changes nothing
    std::optional<bool> destructive = {}; // it may delete or overwrite data, not only add to it
    std::optional<bool> idempotent = {};  // repeating a call has no further effect
    std::optional<bool> open_world = {};  // it interacts with external entities, such as the web

    std::string icon = {}; // an https: or data: URI
    json meta = {};        // an object for the definition's _meta
};

// Returns the tools of this plugin. A plugin with tools defines this function.
std::vector<tool> tools();

} // namespace toolbay
