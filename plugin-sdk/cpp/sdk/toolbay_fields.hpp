// The fields of a struct: their descriptions in a plugin, and reflection on them for the SDK.
#pragma once

#include <concepts>
#include <cstddef>
#include <format>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace toolbay {

// A text as a template argument.
template <std::size_t Size>
struct literal {
    char text[Size]{};

    consteval literal(const char (&from)[Size]) {
        for (std::size_t i = 0; i < Size; i++) text[i] = from[i];
    }

    constexpr operator std::string_view() const {
        return {text, Size - 1};
    }
};

// Further constraints of a value, which follow the description of a field:
//
//     toolbay::optional<int, "How many results.", toolbay::minimum{1}, toolbay::maximum{100}> limit = 10;
struct minimum { double value; };
struct maximum { double value; };
struct min_length { std::size_t value; }; // of a text in characters, of a list in values
struct max_length { std::size_t value; };
template <std::size_t Size>
struct pattern {
    literal<Size> regex;
    consteval pattern(const char (&from)[Size]) : regex(from) {}
};

namespace detail {

// A value that can be used as a T: by inheritance if T is a class, else by
// conversion.
template <typename T>
struct held {
    T value{};

    constexpr held() = default;
    constexpr held(T from) : value(from) {}
    constexpr operator T() const {
        return value;
    }
};

template <typename T>
    requires(std::is_class_v<T> && !std::is_final_v<T>)
struct held<T> : T {
    constexpr held() = default;
    constexpr held(T from) : T(std::move(from)) {}
    template <typename From>
        requires(std::convertible_to<From, T> && !std::same_as<std::remove_cvref_t<From>, T>)
    constexpr held(From &&from) : T(std::forward<From>(from)) {}
};

template <typename T>
constexpr const T &unwrap(const held<T> &held) {
    if constexpr (std::is_class_v<T> && !std::is_final_v<T>) {
        return held;
    } else {
        return held.value;
    }
}

template <typename T>
constexpr T &unwrap(held<T> &held) {
    return const_cast<T &>(unwrap(std::as_const(held)));
}

} // namespace detail

// A required field. It can be used as a T.
template <typename T, literal Description, auto... Constraints>
struct required : detail::held<T> {
    using detail::held<T>::held;
};

// A field that may be left out. Then it has the value that the struct initializes it
// with, which is the default in the schema.
template <typename T, literal Description, auto... Constraints>
struct optional : detail::held<T> {
    using detail::held<T>::held;
};

namespace detail {

// The properties of a field, according to its type. A plain type is required and has
// no other properties; a std::optional may be left out.
template <typename T>
struct traits {
    using type = T;
    static constexpr bool optional = false;
    static constexpr bool has_default = false;
    static constexpr std::string_view description = "";
    static constexpr std::tuple<> constraints = {};
};

template <typename T>
struct traits<std::optional<T>> {
    using type = std::optional<T>;
    static constexpr bool optional = true;
    static constexpr bool has_default = false;
    static constexpr std::string_view description = "";
    static constexpr std::tuple<> constraints = {};
};

template <typename T, literal Description, auto... Constraints>
struct traits<required<T, Description, Constraints...>> {
    using type = T;
    static constexpr bool optional = traits<T>::optional;
    static constexpr bool has_default = false;
    static constexpr std::string_view description = Description;
    static constexpr std::tuple constraints = std::make_tuple(Constraints...);
};

template <typename T, literal Description, auto... Constraints>
struct traits<optional<T, Description, Constraints...>> {
    using type = T;
    static constexpr bool optional = true;
    static constexpr bool has_default = !traits<T>::optional;
    static constexpr std::string_view description = Description;
    static constexpr std::tuple constraints = std::make_tuple(Constraints...);
};

// Returns the value of a field, without its description.
template <typename T>
auto &bare(T &field) {
    if constexpr (std::same_as<typename traits<std::remove_const_t<T>>::type, std::remove_const_t<T>>) {
        return field;
    } else {
        return unwrap(field);
    }
}

// An object that is declared but not defined: only its address is used, at compile
// time, to get the names of fields.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-inline"
#pragma clang diagnostic ignored "-Wundefined-internal"
#pragma clang diagnostic ignored "-Wundefined-var-template"
template <typename T>
struct nowhere {
    T object;
};

template <typename T>
extern const nowhere<T> imagined;

template <auto Pointer>
consteval std::string_view spelled() {
    // "... [Pointer = &imagined.object.name]"
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_suffix(text.size() - text.rfind(']'));
    return text.substr(text.rfind('.') + 1);
}

template <typename T, std::size_t Index>
consteval std::string_view name_of_field() {
    constexpr auto pointer = [] consteval {
        auto &[... fields] = imagined<T>.object;
        return &fields...[Index];
    }();
    return spelled<pointer>();
}
#pragma clang diagnostic pop

// Calls `see(name, field)` for each field of a struct.
template <typename T, typename See>
constexpr void each_field(T &object, See &&see) {
    auto &[... fields] = object;
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
        (see(name_of_field<std::remove_const_t<T>, Index>(), fields...[Index]), ...);
    }(std::make_index_sequence<sizeof...(fields)>());
}

// The name of an enumerator; empty if none has this value.
template <auto Value>
consteval std::string_view name_of_enumerator() {
    // "... [Value = unit::celsius]", or "... [Value = (unit)7]"
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_suffix(text.size() - text.rfind(']'));
    text.remove_prefix(text.rfind(' ') + 1);
    if (text.find(')') != text.npos && text.rfind("::") == text.npos) return {};
    const std::size_t last = text.rfind(':');
    const std::string_view name = text.substr(last == text.npos ? 0 : last + 1);
    const bool is_name = !name.empty() && (name[0] < '0' || name[0] > '9') && name.find(')') == name.npos;
    return is_name ? name : std::string_view{};
}

// Calls `see(name, value)` for each enumerator from 0 to 63.
template <typename T, typename See>
void each_enumerator(See &&see) {
    [&]<std::size_t... Value>(std::index_sequence<Value...>) {
        const auto one = [&]<T Each>() {
            constexpr std::string_view name = name_of_enumerator<Each>();
            if constexpr (!name.empty()) see(name, Each);
        };
        (one.template operator()<static_cast<T>(Value)>(), ...);
    }(std::make_index_sequence<64>());
}

} // namespace detail
} // namespace toolbay

// A field is printed like its value.
template <typename T, toolbay::literal Description, auto... Constraints>
struct std::formatter<toolbay::required<T, Description, Constraints...>> : std::formatter<T> {
    auto format(const toolbay::required<T, Description, Constraints...> &field, auto &context) const {
        return std::formatter<T>::format(toolbay::detail::bare(field), context);
    }
};

template <typename T, toolbay::literal Description, auto... Constraints>
struct std::formatter<toolbay::optional<T, Description, Constraints...>> : std::formatter<T> {
    auto format(const toolbay::optional<T, Description, Constraints...> &field, auto &context) const {
        return std::formatter<T>::format(toolbay::detail::bare(field), context);
    }
};
