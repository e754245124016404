// Checkpoint: all that a training is, in files, so that a program that was killed goes on bit for bit.
//
//   Checkpoint checkpoint("run.safetensors", {{"model", model}, {"state", state}, {"loader", loader}, {"step", step}});
//   checkpoint.resume();  // nothing to do in the first run
//   while (loader.epoch() < 10) {
//     for (auto [x, y] : loader) {
//       ...
//       if (++step % 100 == 0) checkpoint.save();
//     }
//   }
//
// Read next: io.hpp (what files hold), docs/checkpoints.md. checkpoint(f), which trades time for memory, is in
// gradient_rules.hpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <rosin/export.hpp>
#include <rosin/io.hpp>
#include <rosin/known_parts.hpp>
#include <rosin/loader.hpp>
#include <rosin/optim.hpp>
#include <rosin/small_function.hpp>

namespace rosin {

namespace detail {

/// Gathers what is saved. It refers to the things; names are copied.
class ROSIN_API GatheredEntries {
 public:
  GatheredEntries();
  ~GatheredEntries();
  GatheredEntries(const GatheredEntries&) = delete;
  GatheredEntries& operator=(const GatheredEntries&) = delete;

  template <class T> void add(std::string_view name, const T& thing) { add_entry(SaveEntry(kept(name), thing)); }
  void add_state(std::string_view name, const State& state);
  void add_loader(std::string_view name, const LoaderState& loader);
  /// Which layers are in training or test mode.
  void add_modes(std::string_view name, ModelView model);

  struct Lists;
  const Lists& lists() const noexcept { return *lists_; }

 private:
  std::string_view kept(std::string_view name);
  void add_entry(const SaveEntry& entry);

  Lists* lists_;
};

/// Gathers what is loaded from a file, and loads it once all is known to fit.
class ROSIN_API RestoredEntries {
 public:
  explicit RestoredEntries(const SavedFile& file);
  ~RestoredEntries();
  RestoredEntries(const RestoredEntries&) = delete;
  RestoredEntries& operator=(const RestoredEntries&) = delete;

  template <class T> void add(std::string_view name, T& thing) { add_entry(LoadEntry(kept(name), thing)); }
  void add_state(std::string_view name, State& state);
  void add_modes(std::string_view name, ModelEdit model);
  /// What the file has of a loader. Error (argument), (io): it is not there, or not that of a loader.
  LoaderState loader(std::string_view name);
  int64_t number(std::string_view name);
  /// Called when everything else is loaded; throws nothing.
  void then(SmallFunction<void()> change);

  struct Lists;
  Lists& lists() noexcept { return *lists_; }

 private:
  std::string_view kept(std::string_view name);
  void add_entry(const LoadEntry& entry);

  Lists* lists_;
};

/// Throws that the number of a field is none of its type. Error (io).
[[noreturn]] ROSIN_API void refuse_enum(std::string_view field, int64_t number);

/// Whether every number of its integer type is a value of the enum, which flags need and later versions may use.
template <class Enum>
concept HasFixedType = requires { Enum{0}; };

/// Error (io): no value of the enum's integer type is this number. Which values have names is not asked.
template <class Enum> Enum saved_enum(std::string_view field, int64_t number) {
  static_assert(HasFixedType<Enum>, "rosin: an enum in a checkpoint needs an integer type: enum Phase : uint8_t {...}");
  const auto value = static_cast<std::underlying_type_t<Enum>>(number);
  if (static_cast<int64_t>(value) != number) refuse_enum(field, number);
  return static_cast<Enum>(value);
}

}  // namespace detail

namespace reflect {

template <class T>
concept LoaderLike = requires(T& x, const LoaderState& state) {
  { x.state() } -> std::same_as<LoaderState>;
  x.set_state(state);
};
/// Classes of numbers and the like, such as a schedule: what a file holds of them are their fields.
template <class T>
concept PlainFields = HasFields<T> && !Container<T> && !StringLike<T> && !is_visited<T> &&
                      !WalksItself<T, ModelEditor> && !holds_arrays<T>();
/// Models, which may have layers with a mode.
template <class T>
concept HoldsLayers = Walkable<T> && !is_visited<T> && !LeafList<T>;
/// Things that files hold by their value.
template <class T>
concept FileValue = requires(std::string_view name, T& thing) {
  SaveEntry(name, thing);
  LoadEntry(name, thing);
};

/// Calls f(name, value) for every value in x: its own, or those of its fields. Functions are the program's.
template <class T, class F> void each_value(std::string_view name, T& x, F& f) {
  if constexpr (is_function<T>()) {
  } else if constexpr (PlainFields<T>) {
    FieldsOf<T>::each(x, [&](std::string_view field, auto& value) {
      each_value(std::string(name) + "." + std::string(field), value, f);
    });
  } else if constexpr (LeafList<T> && !FileValue<T>) {
    int64_t index = 0;
    for (auto& element : x) each_value(std::string(name) + "." + std::to_string(index++), element, f);
  } else {
    static_assert(
        FileValue<T> || std::is_enum_v<T>,
        "rosin: a checkpoint holds models, states, loaders, arrays, numbers, texts, vectors of them, generators "
        "and structs of such fields");
    f(name, x);
  }
}

/// Structs with arrays and numbers side by side, which are both theirs to keep. (What the library's own layers are made
/// with, such as probabilities, is the program's text: these state their fields.)
template <class T>
concept Record = HasFields<T> && !Container<T> && !StringLike<T> && !is_visited<T> && !WalksItself<T, ModelEditor> &&
                 holds_arrays<T>() && !(is_named_from<T>("rosin::") && requires { T::rosin_fields; });

/// Calls f(name, value) for the numbers, texts and enums that stand beside the arrays of records, in sequences of these
/// too, but not for modes of layers. What files do not hold is passed over.
template <class T, class F> void each_value_beside_arrays(std::string_view name, T& x, F& f) {
  const auto into = [&](const std::string& part, auto& value) {
    each_value_beside_arrays(std::string(name) + "." + part, value, f);
  };
  if constexpr (std::is_const_v<T> || is_function<T>() || is_visited<T> || std::is_same_v<T, LayerMode>) {
  } else if constexpr (Record<T> || PlainFields<T>) {
    FieldsOf<T>::each(x, [&](std::string_view field, auto& value) { into(std::string(field), value); });
  } else if constexpr (SequenceLike<T> && !(LeafList<T> && FileValue<T>)) {
    int64_t index = 0;
    for (auto& element : x) into(std::to_string(index++), element);
  } else if constexpr (std::is_enum_v<T>) {
    if constexpr (detail::HasFixedType<T>) f(name, x);
  } else if constexpr (FileValue<T> && (is_leaf<T> || LeafList<T>)) {
    f(name, x);
  }
}

}  // namespace reflect

/// One named thing that a checkpoint saves and loads: a model, an optimiser state with its hyper-parameters, a loader
/// with its place and generator, an array, a number, a text, a vector of numbers or texts, a generator, or a struct of
/// such fields (a schedule, a model with counters beside its layers). Refers to it.
class CheckpointEntry {
 public:
  template <class T>
    requires(!std::is_const_v<T>)
  CheckpointEntry(std::string name, T& thing)
      : name_(std::move(name)), thing_(&thing), gather_(gather_thing<T>), restore_(restore_thing<T>) {}

  const std::string& name() const noexcept { return name_; }
  void gather(detail::GatheredEntries& to) const { gather_(name_, thing_, to); }
  void restore(detail::RestoredEntries& from) const { restore_(name_, thing_, from); }

 private:
  template <class T> static void gather_thing(const std::string& name, const void* thing, detail::GatheredEntries& to) {
    const T& x = *static_cast<const T*>(thing);
    if constexpr (std::is_same_v<T, State>) {
      to.add_state(name, x);
    } else if constexpr (reflect::LoaderLike<T>) {
      to.add_loader(name, x.state());
    } else {
      const auto save = [&](std::string_view field, const auto& value) {
        if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>) to.add(field, static_cast<int64_t>(value));
        else to.add(field, value);
      };
      if constexpr (reflect::PlainFields<T>) {
        reflect::each_value(name, const_cast<T&>(x), save);
      } else {
        to.add(name, x);
        if constexpr (reflect::HoldsLayers<T>) to.add_modes(name, x);
        if constexpr (reflect::holds_arrays<T>()) reflect::each_value_beside_arrays(name, const_cast<T&>(x), save);
      }
    }
  }
  template <class T> static void restore_thing(const std::string& name, void* thing, detail::RestoredEntries& from) {
    T& x = *static_cast<T*>(thing);
    if constexpr (std::is_same_v<T, State>) {
      from.add_state(name, x);
    } else if constexpr (reflect::LoaderLike<T>) {
      const LoaderState saved = from.loader(name);
      detail::check_loader_state(x.state(), saved);
      from.then(SmallFunction<void()>([&x, saved] { x.set_state(saved); }));
    } else {
      const auto load = [&]<class Value>(std::string_view field, Value& value) {
        if constexpr (std::is_enum_v<Value>) {
          const auto saved = detail::saved_enum<Value>(field, from.number(field));
          from.then(SmallFunction<void()>([&value, saved] { value = saved; }));
        } else {
          from.add(field, value);
        }
      };
      if constexpr (reflect::PlainFields<T>) {
        reflect::each_value(name, x, load);
      } else {
        from.add(name, x);
        if constexpr (reflect::HoldsLayers<T>) from.add_modes(name, x);
        if constexpr (reflect::holds_arrays<T>()) reflect::each_value_beside_arrays(name, x, load);
      }
    }
  }

  std::string name_;
  void* thing_;
  void (*gather_)(const std::string& name, const void* thing, detail::GatheredEntries& to);
  void (*restore_)(const std::string& name, void* thing, detail::RestoredEntries& from);
};

struct RotateOptions {
  int64_t keep = 3;                 // how many of the newest files stay
  std::optional<double> best = {};  // how good this one is, such as its loss; the file with the lowest stays as well
  bool higher = false;              // the highest `best` is the best
  bool behind = false;              // writes as save_behind does
};

/// A file, or a row of numbered files, with all that is needed to go on exactly: the entries, and the generators of
/// threads (`default_rng`, `seed`). A program that is started again makes the same things in the same order, calls
/// resume(), and goes on bit for bit, also in the middle of an epoch. Files are safetensors, written whole or not at
/// all, and flushed to the disk with their folder before save returns. The things outlive the checkpoint. For one
/// thread, the one that trains.
class ROSIN_API Checkpoint {
 public:
  /// Error (argument): the path does not end in .safetensors, or an entry's name is empty, used twice, or `rosin`.
  Checkpoint(std::string path, std::initializer_list<CheckpointEntry> entries);
  /// Waits for what is written; an error that nobody asked for is a warning (`checkpoint-lost`).
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// Writes everything as it is now. Errors: those of rosin::save, and of what was written behind; the file stays as
  /// it was.
  void save();
  /// The same, written by a thread of its own while the program goes on: arrays are values, so what is written is what
  /// everything was at the call. One file is written at a time: waits for the one before. Errors of writing are thrown
  /// by the next call of save, save_behind, rotate, resume or wait.
  void save_behind();
  /// Writes the next file of a row, "run.000001.safetensors", then removes those but for the newest and the best.
  /// Error (argument): keep < 1.
  void rotate(RotateOptions options = {});
  /// Returns when what is written behind is on the disk. Throws what went wrong there.
  void wait();

  /// Loads the newest file, all or nothing; false: there is none. Errors as load.
  bool resume();
  /// Loads one file, all or nothing. Errors: io (it cannot be read, is damaged or no checkpoint), argument (entries,
  /// names, rule or loader differ from what was saved), shape, dtype.
  void load(const std::string& path);

  /// The files that resume and `load(best())` read; empty where there are none. Error (io): the folder or a file's
  /// header cannot be read.
  std::string newest() const;
  std::string best() const;

 private:
  struct Parts;
  Parts* parts_;
};

}  // namespace rosin
