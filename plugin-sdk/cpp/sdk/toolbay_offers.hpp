// Prompts, resources and completions.
//
//     struct Greeting {
//         toolbay::required<std::string, "Who to greet."> name;
//     };
//
//     std::string greeting(const Greeting &args) {
//         return "Greet " + args.name + ".";
//     }
//
//     TOOLBAY_PROMPTS({.name = "greeting", .description = "Greets somebody.", .run = greeting})
//
// Like toolbay_ask.hpp, this is a separate header, because its names would hide those
// of a plugin's own functions in the body of toolbay::tools.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "toolbay.hpp"

namespace toolbay {

namespace detail {

// The types that can be read from a text: an argument of a prompt, or a variable of a URI.
template <typename T>
struct from_text : std::bool_constant<std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string>> {};
template <typename T>
struct from_text<std::optional<T>> : from_text<T> {};

// An argument of a prompt, or a variable of a URI.
struct argument {
    std::string name, description;
    bool required;
};

template <typename T>
std::vector<argument> arguments_of() {
    std::vector<argument> arguments;
    const T defaults{};
    each_field(defaults, [&]<typename Field>(std::string_view name, const Field &) {
        using traits = traits<Field>;
        static_assert(from_text<typename traits::type>::value,
                      "an argument of a prompt, and a variable of a URI, is a string, a number, a bool or an enum");
        arguments.push_back({std::string(name), std::string(traits::description), !traits::optional});
    });
    return arguments;
}

inline std::vector<argument> no_arguments() {
    return {};
}

// Reads values, which are text, into a struct. Returns an error message, or nothing.
template <typename T>
std::string read_values(std::span<const toolbay_setting> values, T &arguments) {
    std::string problem;
    each_field(arguments, [&]<typename Field>(std::string_view name, Field &field) {
        if (!problem.empty()) return;
        const toolbay_setting *given = nullptr;
        for (const toolbay_setting &value : values) {
            if (std::string_view(value.key.data, value.key.size) == name) given = &value;
        }
        if (!given) {
            if (!traits<Field>::optional) problem = std::format("`{}` is missing", name);
            return;
        }
        // Read as a number or a boolean if it is one and the field is not a text.
        const toolbay_json *json = toolbay_json_parse(given->value);
        const bool plain = json && (toolbay_json_kind_of(json) == TOOLBAY_JSON_NUMBER ||
                                    toolbay_json_kind_of(json) == TOOLBAY_JSON_BOOLEAN);
        constexpr bool words = std::convertible_to<typename traits<Field>::type, std::string_view> ||
                               std::same_as<typename traits<Field>::type, std::optional<std::string>>;
        if (words || !plain) {
            writer text;
            text.write(std::string_view(given->value.data, given->value.size));
            json = toolbay_json_parse(lend(text.written()));
        }
        problem = read(json, std::string(name), bare(field));
    });
    return problem;
}

// The function of a prompt or of a resource. `Adder` adds the returned value.
template <typename Adder>
class text_handler {
  public:
    template <typename Function>
        requires(!std::is_same_v<std::remove_cvref_t<Function>, text_handler>)
    text_handler(Function function) : text_handler(std::function(std::move(function)), 0) {}

    std::vector<argument> arguments() const {
        return arguments_();
    }

    toolbay_result *call(std::span<const toolbay_setting> values) const {
        return call_(values);
    }

  private:
    template <typename Result, typename Arguments>
    text_handler(std::function<Result(Arguments)> function, int)
        : arguments_(arguments_of<std::remove_cvref_t<Arguments>>),
          call_([function = std::move(function)](std::span<const toolbay_setting> values) {
              std::remove_cvref_t<Arguments> arguments{};
              const std::string problem = read_values(values, arguments);
              if (!problem.empty()) return toolbay_invalid("%s", problem.c_str());
              return finish([&] { return function(arguments); }, Adder());
          }) {}

    template <typename Result>
    text_handler(std::function<Result()> function, int)
        : arguments_(no_arguments),
          call_([function = std::move(function)](std::span<const toolbay_setting>) {
              return finish(function, Adder());
          }) {}

    std::function<std::vector<argument>()> arguments_;
    std::function<toolbay_result *(std::span<const toolbay_setting>)> call_;
};

struct message_adder {
    template <typename T>
    output operator()(output &&to, const T &value) const {
        if constexpr (std::is_same_v<T, output>) {
            return value;
        } else if constexpr (is_optional<T>) {
            return value ? (*this)(std::move(to), *value) : std::move(to);
        } else if constexpr (is_tuple<T>) {
            std::apply([&](const auto &...each) { ((to = (*this)(std::move(to), each)), ...); }, value);
            return std::move(to);
        } else if constexpr (block<T>) {
            return std::move(to).add(value);
        } else {
            static_assert(has_no_shape<T>, "a prompt returns text, a block, several of these, or an output");
        }
    }
};

struct item_adder {
    template <typename T>
    output operator()(output &&to, const T &value) const {
        if constexpr (std::is_same_v<T, output>) {
            return value;
        } else if constexpr (is_optional<T>) {
            return value ? (*this)(std::move(to), *value) : std::move(to);
        } else if constexpr (is_tuple<T>) {
            std::apply([&](const auto &...each) { ((to = (*this)(std::move(to), each)), ...); }, value);
            return std::move(to);
        } else if constexpr (std::is_same_v<T, bytes>) {
            return std::move(to).add(binary_resource{.uri = {}, .data = value});
        } else if constexpr (std::is_same_v<T, link>) {
            static_assert(has_no_shape<T>, "a resource cannot return a link: an item is text or bytes");
        } else if constexpr (block<T>) {
            return std::move(to).add(value);
        } else if constexpr (list<T>) {
            for (const auto &each : value) to = (*this)(std::move(to), each);
            return std::move(to);
        } else if constexpr (object<T>) {
            return std::move(to).add(text_resource{.uri = {}, .text = to_json(value).text, .mime_type = "application/json"});
        } else {
            static_assert(has_no_shape<T>, "a resource returns text, bytes, a struct, several of these, or an output");
        }
    }
};

} // namespace detail

// ------------------------------------------------------------------- prompts

// The function of a prompt: any function or lambda that takes one struct of strings,
// numbers, bools and enums, or nothing, and returns
//
//   - text, an image or another block: one message of the user,
//   - several of these: std::pair or std::tuple,
//   - messages of both sides: toolbay::output().user("...").assistant("..."),
//   - any of these or a failure: toolbay::result<...>.
using prompt_handler = detail::text_handler<detail::message_adder>;

// One prompt: a text that the user chooses, which becomes the beginning of a conversation.
struct prompt {
    std::string name;        // the name by which clients get it: A-Z a-z 0-9 _ - .
    std::string title = {};  // a display name
    std::string description; // its purpose, written for people
    prompt_handler run;
    std::string icon = {}; // an https: or data: URI
    json meta = {};        // an object for the definition's _meta
};

// ----------------------------------------------------------------- resources

// The function of a resource: any function or lambda that takes nothing or, for a
// template, a struct with the variables of its URI, and returns
//
//   - text: std::string, std::string_view or const char *,
//   - bytes: toolbay::bytes,
//   - a struct, which becomes JSON,
//   - text_resource, binary_resource or image: an item with its own URI or MIME type,
//   - several of these: std::vector, std::pair, std::tuple or output,
//   - a std::optional of these, which is empty if there is no such resource,
//   - any of these or a failure: toolbay::result<...>.
using resource_handler = detail::text_handler<detail::item_adder>;

// One resource, or many: in the template of a URI, {name} stands for one or more
// characters other than / ? # and {+name} for any. The value of {name} is decoded,
// so that %20 is a space.
struct resource {
    std::string uri; // such as notes://all, or notes://{folder}/{id}
    std::string name;
    std::string title = {};       // a display name
    std::string description = {}; // its content, described for the model
    std::string mime_type = {};   // also of items that do not have their own
    resource_handler run;

    std::optional<std::uint64_t> size = {};                  // in bytes, not of a template
    toolbay::audience audience = toolbay::audience::everyone;
    std::optional<double> priority = {};                     // from 0 (optional) to 1 (required)
    std::string last_modified = {};                          // in ISO 8601, not of a template
    std::string icon = {};                                   // an https: or data: URI
    json meta = {};                                          // an object for the definition's _meta
};

// Notifies the clients that subscribed to this resource of the plugin that its content changed.
inline void resource_updated(const std::string &uri) {
    toolbay_resource_updated(uri.c_str());
}

// --------------------------------------------------------------- completions

// Values that an argument could have, the best first.
struct suggestions {
    std::vector<std::string> values;
    std::optional<std::uint32_t> total = {}; // the total number of values
    bool more = false;                       // there are more values than those in `values`
};

// Returns the values that begin with the typed text, ignoring the case of the letters A to Z.
inline suggestions beginning_with(std::string_view typed, std::initializer_list<std::string_view> values) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    suggestions found;
    for (const std::string_view value : values) {
        bool begins = value.size() >= typed.size();
        for (std::size_t i = 0; begins && i < typed.size(); i++) begins = lower(value[i]) == lower(typed[i]);
        if (begins) found.values.emplace_back(value);
    }
    return found;
}

// The arguments that are already complete, by name.
using given = std::map<std::string, std::string>;

// The function of a completion: any function or lambda that takes the typed text, as
// std::string_view, and optionally a `const toolbay::given &`, and returns
// toolbay::suggestions or a list of strings, or one of these or a failure.
class completion_handler {
  public:
    template <typename Function>
        requires(std::invocable<Function, std::string_view> || std::invocable<Function, std::string_view, const given &>)
    completion_handler(Function function)
        : call_([function = std::move(function)](std::string_view typed, const given &given) {
              if constexpr (std::invocable<Function, std::string_view, const toolbay::given &>) {
                  return finish([&] { return function(typed, given); });
              } else {
                  return finish([&] { return function(typed); });
              }
          }) {}

    toolbay_result *call(std::string_view typed, const given &given) const {
        return call_(typed, given);
    }

  private:
    template <typename Function>
    static toolbay_result *finish(const Function &function) {
        return detail::finish(function, []<typename T>(output &&to, const T &value) {
            if constexpr (std::is_same_v<T, suggestions>) {
                for (const std::string &each : value.values) to = std::move(to).add(each);
                if (value.total) toolbay_set_total(to.get(), *value.total);
                if (value.more) toolbay_set_more(to.get());
            } else {
                static_assert(detail::list<T>, "a completion returns toolbay::suggestions or a list of strings");
                for (const auto &each : value) to = std::move(to).add(std::string_view(each));
            }
            return std::move(to);
        });
    }

    std::function<toolbay_result *(std::string_view, const given &)> call_;
};

// Suggests values for an argument of a prompt, or for a variable of a template.
struct completion {
    std::string prompt = {};   // the name of the prompt ...
    std::string resource = {}; // ... or the template
    std::string argument;
    completion_handler run;
};

// The prompts, resources and completions of this plugin. Do not define these functions
// yourself: each macro below, used outside of any namespace, defines one and makes the
// plugin export that interface of the contract.
std::vector<prompt> prompts();
std::vector<resource> resources();
std::vector<completion> completions();

} // namespace toolbay

#undef TOOLBAY_PROMPTS
#undef TOOLBAY_RESOURCES
#undef TOOLBAY_COMPLETIONS

// TOOLBAY_PROMPTS({.name = "greeting", .description = "Greets somebody.", .run = greeting}, {...})
#define TOOLBAY_PROMPTS(...)                                                                                           \
    static std::vector<toolbay::prompt> toolbay_prompts_() {                                                           \
        return {__VA_ARGS__};                                                                                          \
    }                                                                                                                  \
    std::vector<toolbay::prompt> toolbay::prompts() {                                                                  \
        return toolbay_prompts_();                                                                                     \
    }                                                                                                                  \
    TOOLBAY_EXPORT_PROMPTS

// TOOLBAY_RESOURCES({.uri = "notes://{id}", .name = "note", .run = note}, {...})
#define TOOLBAY_RESOURCES(...)                                                                                         \
    static std::vector<toolbay::resource> toolbay_resources_() {                                                       \
        return {__VA_ARGS__};                                                                                          \
    }                                                                                                                  \
    std::vector<toolbay::resource> toolbay::resources() {                                                              \
        return toolbay_resources_();                                                                                   \
    }                                                                                                                  \
    TOOLBAY_EXPORT_RESOURCES

// TOOLBAY_COMPLETIONS({.prompt = "greeting", .argument = "style", .run = styles}, {...})
#define TOOLBAY_COMPLETIONS(...)                                                                                       \
    static std::vector<toolbay::completion> toolbay_completions_() {                                                   \
        return {__VA_ARGS__};                                                                                          \
    }                                                                                                                  \
    std::vector<toolbay::completion> toolbay::completions() {                                             \
        return toolbay_completions_();                                                                                 \
    }                                                                                                                  \
    TOOLBAY_EXPORT_COMPLETIONS
