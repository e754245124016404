// 22: an LSTM that invents names: example_22_names_lstm [names.txt [epochs]]. Names of differing lengths are collated.
// Last line: better than letters by their frequency: yes
#include <rosin/rosin.hpp>

#include <fstream>
#include <iostream>

using namespace rosin;

constexpr int64_t symbols = 27;  // the end of a name, and the letters

struct Speller {
  Embedding letters{symbols, 16};
  LSTM lstm{16, 64};
  Dense next{64, symbols};

  /// (length, batch) -> logits of the letter that follows (symbols, length, batch).
  Array operator()(const Array& ids) const { return next(lstm(letters(ids))); }
};

/// A name as numbers, with the end before and behind it.
struct Names {
  std::vector<std::string> list;
  int64_t numobs() const { return static_cast<int64_t>(list.size()); }
  Array getobs(int64_t i) const {
    std::vector<int32_t> ids = {0};
    for (const char c : list[static_cast<size_t>(i)]) ids.push_back(c - 'a' + 1);
    ids.push_back(0);
    const auto count = static_cast<int64_t>(ids.size());
    return Array::borrow(std::move(ids), {count});
  }
};

std::vector<std::string> read_names(const char* path) {
  if (!path) {
    return {"emma",   "olivia",   "ava",      "isabella", "sophia", "charlotte", "mia",   "amelia",
            "harper", "evelyn",   "abigail",  "emily",    "ella",   "avery",     "sofia", "camila",
            "aria",   "scarlett", "victoria", "madison",  "luna",   "grace",     "chloe", "layla"};
  }
  std::vector<std::string> names;
  std::ifstream file(path);
  for (std::string name; std::getline(file, name);) names.push_back(name);
  return names;
}

/// The loss, without what is padding (-1).
Array loss(const Speller& m, const Array& ids) {
  const Array from = ids(slice(0, -1)), to = ids(slice(1, to_end));
  return labelcrossentropy(m(max(from, 0)), to, {.ignore = -1});
}

int main(int argc, char** argv) {
  seed(2);
  const Names names{read_names(argc > 1 ? argv[1] : nullptr)};
  const int64_t epochs = argc > 2 ? std::stol(argv[2]) : argc > 1 ? 3 : 60;
  const auto pad = [](const std::vector<Array>& all) { return batch_sequence(all, -1); };
  auto [training, rest] = splitobs(shuffleobs(names), {.at = 0.9});
  DataLoader loader(collateobs(training, pad), {.batchsize = argc > 1 ? 64 : 8, .shuffle = true});

  Speller model;
  State state = setup(Adam{.eta = 1e-2}, model);
  ProgressBar bar(epochs, loader.size(), stderr, argc > 1 ? 64 : 8);
  for (int64_t epoch = 0; epoch < epochs; ++epoch) train(loss, model, loader, state, bar);

  const Array all = pad([&] {
    std::vector<Array> list;
    for (int64_t i = 0; i < names.numobs() && i < 2000; ++i) list.push_back(names.getobs(i));
    return list;
  }());
  const Array counts = cast(bincount(all(slice(1, to_end)), symbols), Float64), share = counts / sum(counts);
  const double by_frequency = -sum(share * log(max(share, 1e-30))).item();
  double score = 0;
  for (const Array& ids : DataLoader(collateobs(training, pad), {.batchsize = 64})) score = loss(model, ids).item();
  for (int i = 0; i < 5; ++i) {
    Array ids = zeros({1, 1}, Int32);
    std::string name;
    while (name.size() < 12) {
      const int64_t letter = categorical(model(ids)(slice(), -1, 0)).item<int64_t>();
      if (letter == 0) break;
      name += static_cast<char>('a' + letter - 1);
      ids = concat({ids, full({1, 1}, letter, Int32)}, 0);
    }
    std::cout << name << "\n";
  }
  std::cout << "loss " << score << ", by frequency " << by_frequency << "\n";
  std::cout << "better than letters by their frequency: " << (score < by_frequency ? "yes" : "no") << "\n";
}
