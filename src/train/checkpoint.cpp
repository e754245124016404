// Checkpoint: what its entries gather becomes a safetensors file, now or behind the program. Read next: rotation.hpp
// (names of files), io/entries.hpp.
#include <rosin/checkpoint.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "io/entries.hpp"
#include "ops/generators.hpp"
#include "optim/options.hpp"
#include "train/rotation.hpp"

namespace rosin {

struct detail::GatheredEntries::Lists {
  std::deque<std::string> names;
  std::deque<StateOptions> options;
  std::vector<SaveEntry> entries;
};

struct detail::RestoredEntries::Lists {
  explicit Lists(const SavedFile& from) : file(from) {}
  const SavedFile& file;
  std::vector<std::string> used;  // arrays of the file that were read already
  std::deque<std::string> names;
  std::vector<LoadEntry> entries;
  std::vector<SmallFunction<void()>> changes;
};

namespace {

using detail::GatheredEntries;
using detail::RestoredEntries;

constexpr const char* generators_name = "rosin.generators";

/// Parts of the names under which a state and a loader stand; no path of a model has a colon in it.
std::string part(std::string_view name, const char* what) { return std::string(name) + ":" + what; }

/// A value of the file that is looked at before anything is loaded.
const Array& fact(RestoredEntries::Lists& lists, const std::string& name, DType type, std::optional<Shape> shape) {
  if (!lists.file.contains(name)) {
    throw Error(ErrorKind::argument,
                "load: a checkpoint is loaded with the entries that it was saved with; it has no " + name +
                    "; give the entries that the file has, or begin anew without it");
  }
  const Array& found = lists.file[name];
  if (found.dtype() != type || (shape && !(found.shape() == *shape))) {
    throw Error(ErrorKind::io, "load: " + name + " of a checkpoint must be " + to_string(type) +
                                   (shape ? " " + to_string(*shape) : std::string()) + "; it is " +
                                   to_string(found.dtype()) + " " + to_string(found.shape()) +
                                   "; the file was changed by another program");
  }
  lists.used.push_back(name);
  return found;
}

template <class T> T number_in(RestoredEntries::Lists& lists, const std::string& name) {
  return fact(lists, name, dtype_of<T>, Shape()).template item<T>();
}

class ListModes : public ModelVisitor {
 public:
  void array(const Array&, const ModelPath&) override {}
  void leaf(const ModelPart& part, const ModelPath&) override {
    if (part.type == "LayerMode") modes.push_back(static_cast<uint8_t>(part.integer));
  }
  std::vector<uint8_t> modes;
};

class FindModes : public ModelEditor {
 public:
  void array(Array&, const ModelPath&) override {}
  void mode(LayerMode& mode, const ModelPath&) override { modes.push_back(&mode); }
  std::vector<LayerMode*> modes;
};

/// What a file is made of, which stays as it is while the program goes on.
struct Content {
  std::string path;
  std::vector<OutgoingArray> arrays;
  MarkTexts texts;
  int64_t keep = 0;  // of the row; 0: it is no file of a row
  std::string row;

  void write() {
    write_safetensors(path, std::move(arrays), texts);
    if (keep > 0) remove_old(row, keep);
  }
};

/// Throws the error with the file in its text: "load: 'run.safetensors': ...".
[[noreturn]] void tell_path(const Error& error, const std::string& path) {
  std::string_view text = error.what();
  constexpr std::string_view prefix = "load: ";
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  throw Error(error.kind(), "load: '" + path + "': " + std::string(text));
}

Array stored(const Generators& generators) {
  const uint64_t words[] = {generators.own.key(), generators.own.counter(), generators.seed, generators.threads};
  return Array(std::span<const uint64_t>(words), Shape{4});
}

Generators restored(const Array& words) {
  uint64_t values[4];
  words.copy_to(std::span<uint64_t>(values));
  return {Rng::restored(values[0], values[1]), values[2], values[3]};
}

void check_names(const std::vector<CheckpointEntry>& entries) {
  for (const CheckpointEntry& entry : entries) {
    const auto same_name = [&](const CheckpointEntry& other) { return other.name() == entry.name(); };
    const bool once = std::count_if(entries.begin(), entries.end(), same_name) == 1;
    if (once && !entry.name().empty() && entry.name() != "rosin" && !entry.name().starts_with("rosin.")) continue;
    throw Error(ErrorKind::argument, "checkpoint: every entry needs a name of its own, which is not rosin; got '" +
                                         entry.name() + "'" + (once ? "" : " twice") + "; rename it");
  }
}

}  // namespace

detail::GatheredEntries::GatheredEntries() : lists_(new Lists) {}
detail::GatheredEntries::~GatheredEntries() { delete lists_; }
std::string_view detail::GatheredEntries::kept(std::string_view name) { return lists_->names.emplace_back(name); }
void detail::GatheredEntries::add_entry(const SaveEntry& entry) { lists_->entries.push_back(entry); }

void detail::GatheredEntries::add_state(std::string_view name, const State& state) {
  const StateOptions& options = lists_->options.emplace_back(options_of(state));
  add(name, state);
  add(part(name, "rule"), options.rule);
  add(part(name, "leaves"), options.leaves);
  add(part(name, "options"), options.values);
  add(part(name, "frozen"), options.frozen);
}

void detail::GatheredEntries::add_modes(std::string_view name, ModelView model) {
  ListModes found;
  model.visit_with(found);
  if (!found.modes.empty()) add(part(name, "modes"), found.modes);
}

void detail::GatheredEntries::add_loader(std::string_view name, const LoaderState& loader) {
  add(part(name, "epoch"), loader.epoch);
  add(part(name, "batch"), loader.batch);
  add(part(name, "observations"), loader.observations);
  add(part(name, "batchsize"), loader.batchsize);
  add(part(name, "shuffle"), loader.shuffle);
  add(part(name, "partial"), loader.partial);
  add(part(name, "rng"), loader.rng);
}

detail::RestoredEntries::RestoredEntries(const SavedFile& file) : lists_(new Lists(file)) {}
detail::RestoredEntries::~RestoredEntries() { delete lists_; }
std::string_view detail::RestoredEntries::kept(std::string_view name) { return lists_->names.emplace_back(name); }
void detail::RestoredEntries::add_entry(const LoadEntry& entry) { lists_->entries.push_back(entry); }
void detail::RestoredEntries::then(SmallFunction<void()> change) { lists_->changes.push_back(std::move(change)); }

void detail::RestoredEntries::add_state(std::string_view name, State& state) {
  StateOptions saved;
  saved.rule = lists_->file.text(part(name, "rule"));
  saved.leaves = lists_->file.texts(part(name, "leaves"));
  saved.values = fact(*lists_, part(name, "options"), Float64, {}).to_vector<double>();
  saved.frozen = fact(*lists_, part(name, "frozen"), UInt8, {}).to_vector<uint8_t>();
  check_options(state, saved);
  add(name, state);
  then(SmallFunction<void()>([&state, saved] { set_options(state, saved); }));
}

void detail::RestoredEntries::add_modes(std::string_view name, ModelEdit model) {
  FindModes places;
  model.edit_with(places);
  if (places.modes.empty()) return;
  const auto count = static_cast<int64_t>(places.modes.size());
  const auto saved = fact(*lists_, part(name, "modes"), UInt8, Shape{count}).to_vector<uint8_t>();
  if (std::any_of(saved.begin(), saved.end(), [](uint8_t mode) { return mode > 2; })) {
    throw Error(ErrorKind::io, "load: the mode of a layer is 0, 1 or 2; " + part(name, "modes") +
                                   " has another; the file was changed by another program");
  }
  then(SmallFunction<void()>([places = std::move(places.modes), saved] {
    for (size_t i = 0; i < saved.size(); ++i) *places[i] = static_cast<LayerMode>(saved[i]);
  }));
}

void detail::refuse_enum(std::string_view field, int64_t number) {
  throw Error(ErrorKind::io, "load: a value of an enum fits its integer type; " + std::string(field) +
                                 " of a checkpoint is " + std::to_string(number) +
                                 "; load what this program saved, or give the enum the type that it had");
}

LoaderState detail::RestoredEntries::loader(std::string_view name) {
  LoaderState saved;
  saved.epoch = number(part(name, "epoch"));
  saved.batch = number(part(name, "batch"));
  saved.observations = number(part(name, "observations"));
  saved.batchsize = number(part(name, "batchsize"));
  saved.shuffle = number_in<bool>(*lists_, part(name, "shuffle"));
  saved.partial = number_in<bool>(*lists_, part(name, "partial"));
  saved.rng = restored_generator(fact(*lists_, part(name, "rng"), UInt64, Shape{2}));
  return saved;
}

int64_t detail::RestoredEntries::number(std::string_view name) {
  return number_in<int64_t>(*lists_, std::string(name));
}

struct Checkpoint::Parts {
  std::string path;
  std::vector<CheckpointEntry> entries;
  int64_t last = -1;  // number of the newest file; -1: not looked for yet
  std::thread writer;
  Content content;            // the writer's, while there is one
  std::exception_ptr failed;  // in the writer

  Content gather(const CheckpointMark& mark) const {
    const Generators drawn = generators();
    GatheredEntries gathered;
    for (const CheckpointEntry& entry : entries) entry.gather(gathered);
    gathered.add(generators_name, stored(drawn));
    Content made;
    made.path = path;
    made.texts = mark_texts(mark);
    for (auto& text : texts_of_entries(gathered.lists().entries)) made.texts.push_back(std::move(text));
    made.arrays = arrays_of_entries(gathered.lists().entries);
    return made;
  }

  int64_t next_number() {
    if (last < 0) {
      const std::vector<int64_t> row = numbers_of_row(path);
      const std::optional<CheckpointMark> plain = mark_of(path);
      last = std::max(row.empty() ? 0 : row.back(), plain ? plain->number : 0);
    }
    return ++last;
  }

  void wait() {
    if (writer.joinable()) writer.join();
    if (failed) std::rethrow_exception(std::exchange(failed, nullptr));
  }

  void write_behind(Content made) {
    eval();  // here, as what this thread has recorded is its own
    content = std::move(made);
    const auto work = [this]() noexcept {
      try {
        content.write();
      } catch (...) {
        failed = std::current_exception();
      }
      content = {};
    };
    try {
      writer = std::thread(work);
    } catch (const std::system_error&) {  // no more threads: then here
      work();
      wait();
    }
  }
};

Checkpoint::Checkpoint(std::string path, std::initializer_list<CheckpointEntry> entries) : parts_(nullptr) {
  if (!path.ends_with(".safetensors")) {
    throw Error(ErrorKind::argument,
                "checkpoint: its files are safetensors; got '" + path + "'; write \"run.safetensors\"");
  }
  std::vector<CheckpointEntry> list(entries);
  check_names(list);
  parts_ = new Parts{std::move(path), std::move(list), -1, {}, {}, {}};
}

Checkpoint::~Checkpoint() {
  try {
    wait();
  } catch (const std::exception& error) {
    warn_once("checkpoint-lost", std::string("checkpoint: the last file was not written: ") + error.what(),
              parts_->path);
  }
  delete parts_;
}

void Checkpoint::save() {
  wait();
  parts_->gather({parts_->next_number(), {}}).write();
}

void Checkpoint::save_behind() {
  wait();
  parts_->write_behind(parts_->gather({parts_->next_number(), {}}));
}

void Checkpoint::rotate(RotateOptions options) {
  if (options.keep < 1) {
    throw Error(ErrorKind::argument, "checkpoint: rotate keeps at least 1 file; got " + std::to_string(options.keep) +
                                         "; for one file use save");
  }
  wait();
  CheckpointMark mark{parts_->next_number(), options.best};
  if (mark.score && options.higher) mark.score = -*mark.score;
  Content content = parts_->gather(mark);
  content.path = numbered_path(parts_->path, mark.number);
  content.keep = options.keep;
  content.row = parts_->path;
  if (options.behind) parts_->write_behind(std::move(content));
  else content.write();
}

void Checkpoint::wait() { parts_->wait(); }

bool Checkpoint::resume() {
  wait();
  const std::string file = newest();
  if (file.empty()) return false;
  load(file);
  return true;
}

void Checkpoint::load(const std::string& path) {
  const SavedFile file = read_safetensors(path);
  check_marked(file.metadata(), path);
  RestoredEntries from(file);
  Generators drawn;
  try {
    drawn = restored(fact(from.lists(), generators_name, UInt64, Shape{4}));
    for (const CheckpointEntry& entry : parts_->entries) entry.restore(from);
  } catch (const Error& error) {
    tell_path(error, path);
  }
  std::vector<NamedArray> rest;
  for (const NamedArray& array : file.arrays()) {
    const auto& used = from.lists().used;
    if (std::find(used.begin(), used.end(), array.name) == used.end()) rest.push_back(array);
  }
  load_entries(SavedFile(std::move(rest), file.metadata()), path, from.lists().entries);
  for (const SmallFunction<void()>& change : from.lists().changes) change();
  restore_generators(drawn);
}

std::string Checkpoint::newest() const { return newest_file(parts_->path); }
std::string Checkpoint::best() const { return best_file(parts_->path); }

}  // namespace rosin
