// What the languages of devices write differently, as data. Read next: dialects.cpp, text.cpp.
//
// All languages share one vocabulary: i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 and bool are the types, as_T(x) has the
// same bits as x, T_of_S(x) converts; words2 and words4 are vectors of u32, floats4 is one of f32. A dialect defines it
// in its own terms, so the rest of the text is the same everywhere. In forms, $ and a letter stands for what text.cpp
// puts there.
#pragma once

#include <span>
#include <string_view>

namespace rosin::kernels {

/// A name that kernels may use, and its definition; written before the kernels where it is used.
struct Word {
  std::string_view name;
  std::string_view text;
};

struct Dialect {
  std::string_view name;
  std::string_view prologue;
  std::string_view kernel;     // up to the arguments: $N name, $G items of a group, $A what follows
  std::string_view many;       // where a kernel has many variables, see text.cpp
  std::string_view beside;     // where it says how many groups ($B) shall stand on a multiprocessor, see KernelCode
  std::string_view list;       // how the struct begins whose members arguments are; nothing: they are the kernel's own
  std::string_view buffer;     // an argument: $T type of the elements, $N number
  std::string_view place;      // the statement that makes pointer p$N from that argument, or nothing
  std::string_view read_only;  // both for a buffer that no item writes
  std::string_view read_only_place;
  std::string_view pointer;          // where buffers are, in types of pointers to them
  std::string_view parameter;        // as buffer
  std::string_view parameter_place;  // as place, of a$N
  std::string_view hidden;           // arguments behind the others
  std::string_view shared;           // a shared array: $T, $N, $C elements
  std::string_view large;         // the bytes that large shared arrays stand in, or nothing: they are arrays as always
  std::string_view large_shared;  // one of them: $T, $N, $O bytes from the beginning
  std::string_view function;      // qualifiers of a function of the vocabulary
  std::string_view barrier;
  std::string_view group[3];  // this group's place along each dim
  std::string_view item;
  std::string_view math_prefix;  // floor, say, is called math_prefix + "floor" + math_suffix (Float32 only)
  std::string_view math_suffix;
  std::span<const Word> types;  // words stand behind those that they use
  std::span<const Word> words;
};

extern const Dialect dialects[];  // numbered as Language
/// Built on those of a dialect, which may have its own in the place of one. $F in a word: the dialect's `function`.
extern const std::span<const Word> common_words;

}  // namespace rosin::kernels
