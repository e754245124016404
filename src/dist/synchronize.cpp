// Models and states that ranks share: made the same, and compared.
#include <rosin/distributed.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <vector>

#include <rosin/model.hpp>

#include "base/hash.hpp"
#include "dist/group.hpp"
#include "dist/host.hpp"
#include "dist/words.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"

namespace rosin::distributed {
namespace {

using Places = std::vector<rosin::detail::ArrayPlace<const Array*>>;

Places places_of(ModelView model) {
  Places places;
  rosin::detail::list_arrays(model, places);
  return places;
}

/// The arrays of a model by path, type and shape.
class ArrayList : public ListToAgreeOn {
 public:
  explicit ArrayList(ModelView model) : places_(places_of(model)), model_(model) {}
  uint64_t hash() const override {
    uint64_t hash = places_.size();
    for (size_t i = 0; i < places_.size(); ++i) hash = mix(mix(hash, places_[i].path), hash_at(i));
    return hash;
  }
  std::string text() const override {
    std::string text;
    for (size_t i = 0; i < places_.size(); ++i) text += text_at(i) + "\n";
    return text;
  }

 protected:
  virtual uint64_t hash_at(size_t i) const { return hash_of(*places_[i].array); }
  virtual std::string text_at(size_t i) const {
    return described(rosin::detail::path_at(model_, i), *places_[i].array);
  }
  const Places places_;

 private:
  ModelView model_;
};

/// The numbers of a model beside its arrays, as bytes that may be overwritten.
class NumberList : public ModelEditor {
 public:
  void array(Array&, const ModelPath&) override {}
  void numbers(std::span<std::byte> bytes, const ModelPart& part, const ModelPath& path) override {
    places.push_back({path.text(), std::string(part.type), bytes});
    total += bytes.size();
  }

  struct Place {
    std::string path, type;
    std::span<std::byte> bytes;
  };
  std::vector<Place> places;
  size_t total = 0;
};

/// What synchronize sends: arrays by path, type and shape, numbers by path, type and count.
class ContentList : public ArrayList {
 public:
  ContentList(ModelView model, const NumberList& numbers) : ArrayList(model), numbers_(numbers) {}
  uint64_t hash() const override {
    uint64_t hash = ArrayList::hash();
    for (const auto& place : numbers_.places) {
      hash = mix(mix(mix(hash, hash_of(place.path)), hash_of(place.type)), place.bytes.size());
    }
    return hash;
  }
  std::string text() const override {
    std::string text = ArrayList::text();
    for (const auto& place : numbers_.places) {
      text += "\"" + place.path + "\" " + place.type + " of " + std::to_string(place.bytes.size()) + " bytes\n";
    }
    return text;
  }

 private:
  const NumberList& numbers_;
};

/// All together in one message.
void synchronize_numbers(const Backend& backend, const NumberList& numbers, int root) {
  if (numbers.total == 0) return;
  std::vector<std::byte> bytes;
  bytes.reserve(numbers.total);
  for (const auto& place : numbers.places) bytes.insert(bytes.end(), place.bytes.begin(), place.bytes.end());
  detail::synchronize_bytes(backend, bytes.data(), bytes.size(), root);
  auto from = bytes.cbegin();
  for (const auto& place : numbers.places) {
    std::copy_n(from, place.bytes.size(), place.bytes.begin());
    from += static_cast<std::ptrdiff_t>(place.bytes.size());
  }
}

std::string hex_text(uint64_t number) {
  std::array<char, 16> digits{};
  const auto done = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return std::string(digits.data(), done.ptr);
}

/// The same with the elements.
class ValueList : public ArrayList {
 public:
  explicit ValueList(ModelView model) : ArrayList(model) {
    for (const auto& place : places_) {
      elements_.push_back(place.array->is_nothing() ? 0 : hash_of_elements(host_array(*place.array)));
    }
  }

 protected:
  uint64_t hash_at(size_t i) const override { return mix(ArrayList::hash_at(i), elements_[i]); }
  std::string text_at(size_t i) const override {
    return ArrayList::text_at(i) + " with elements of hash " + hex_text(elements_[i]);
  }

 private:
  std::vector<uint64_t> elements_;
};

}  // namespace

void detail::synchronize_bytes(const Backend& backend, void* value, size_t bytes, int root) {
  auto* const given = static_cast<uint8_t*>(value);
  const auto count = static_cast<int64_t>(bytes);
  const Array copy = leaf_of<uint8_t>({count}, [&](int64_t i) { return given[i]; });
  const Piece piece{copy, copy, count};
  backend.group().run({ROSIN_COMM_BROADCAST, "synchronize", UInt8, Reduction::sum, root}, {&piece, 1}, "a number");
  std::copy_n(static_cast<const uint8_t*>(copy.node()->data()), bytes, given);
}

void detail::synchronize_arrays(const Backend& backend, ModelEdit model, int root) {
  Group& group = backend.group();
  NumberList numbers;
  model.edit_with(numbers);
  require_same(group, "synchronize", ContentList(model.view(), numbers),
               "every rank must have the same arrays and numbers", "make the model in the same way on every rank");
  synchronize_numbers(backend, numbers, root);
  std::vector<rosin::detail::ArrayPlace<Array*>> places;
  rosin::detail::list_arrays(model, places);
  const bool is_root = group.rank() == root;
  std::vector<size_t> sent;
  std::vector<Array> own;
  for (size_t i = 0; i < places.size(); ++i) {
    const Array& x = *places[i].array;
    if (x.is_nothing() || places[i].first != static_cast<int>(i)) continue;
    sent.push_back(i);
    own.push_back(x);
  }
  const std::vector<Array> given = placed_together(own);
  std::vector<Array> made(places.size());
  std::vector<Piece> pieces;
  for (size_t k = 0; k < sent.size(); ++k) {
    const Array& x = given[k];
    const Array moved = is_root ? x : fresh_beside(x, x.dtype(), x.shape());
    made[sent[k]] = moved;
    pieces.push_back({moved, moved, x.count() * static_cast<int64_t>(size_of(x.dtype()))});
  }
  group.run({ROSIN_COMM_BROADCAST, "synchronize", UInt8, Reduction::sum, root}, pieces, "arrays");
  if (is_root) return;
  for (size_t i = 0; i < places.size(); ++i) {
    Array& x = *places[i].array;
    const auto first = static_cast<size_t>(places[i].first);
    if (!x.is_nothing()) x = first == i ? placed_like(made[i], x) : *places[first].array;
  }
}

void detail::check_synchronized(const Backend& backend, ModelView model) {
  if (backend.group().ranks() == 1) return;
  require_same(backend.group(), "check_synchronized", ValueList(model), "every rank must have the same arrays",
               "synchronize them, and let every rank make the same steps");
}

}  // namespace rosin::distributed
