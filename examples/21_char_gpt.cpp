// 21: a small GPT that learns to write, letter by letter: example_21_char_gpt [tiny Shakespeare's input.txt [steps]].
// Last line: better than letters by their frequency: yes
#include <rosin/rosin.hpp>

#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>

using namespace rosin;

struct Gpt {
  Embedding tokens;
  Array places;  // (features, length)
  std::vector<TransformerEncoderLayer> blocks;
  LayerNorm norm;
  Dense head;

  /// ids (length, batch) -> logits of the letters that follow (letters, length, batch).
  Array operator()(const Array& ids) const {
    Array x = tokens(ids) + places(slice(), slice(0, ids.size(0)));
    for (const TransformerEncoderLayer& block : blocks) x = block(x, {.causal = true});
    return head(norm(x));
  }
};

Gpt make_gpt(int64_t letters, int64_t features, int64_t length, int64_t layers) {
  Gpt model{Embedding(letters, features),
            zeros({features, length}),
            {},
            LayerNorm(features),
            Dense(features, letters, {.bias = false})};
  const TransformerOptions options{.act = UnaryFunction{gelu}, .dropout = 0, .norm_first = true};
  for (int64_t i = 0; i < layers; ++i) model.blocks.emplace_back(features, 4, 4 * features, options);
  // As GPT-2 begins: all matrices are small.
  return fmap([](const Array& x) { return x.rank() > 1 ? 0.02 * randn(x.shape()) : x; }, model);
}

/// The pieces of the text that begin at `begins` (1, batch), and the same one letter later: (length, batch) each.
std::pair<Array, Array> pieces(const Array& text, const Array& begins, int64_t length) {
  const Array from = reshape(arange(length), {length, 1}) + begins;
  return {gather(text, from), gather(text, from + 1)};
}

/// The loss in nats of one who knows how often each letter comes, and nothing else.
double entropy(const Array& text, int64_t letters) {
  const Array share = cast(bincount(text, letters), Float64) / static_cast<double>(text.count());
  return -sum(share * log(max(share, 1e-30))).item();
}

int main(int argc, char** argv) {
  seed(1);
  std::string text;
  if (argc > 1) {
    std::ifstream file(argv[1]);
    text.assign(std::istreambuf_iterator<char>(file), {});
  } else {
    for (int i = 0; i < 60; ++i) text += "to be or not to be, that is the question: whether it is nobler to suffer\n";
  }
  const CharTokenizer letters(text);
  const std::vector<int32_t> ids = letters.encode(text);
  const auto count = static_cast<int64_t>(ids.size());
  const Array all(ids, {count}), training = all(slice(0, count * 9 / 10)), rest = all(slice(count * 9 / 10, count));
  const bool large = argc > 1;
  const int64_t length = large ? 64 : 32, batch = large ? 32 : 8,
                steps = argc > 2 ? std::stol(argv[2])
                        : large  ? 2000
                                 : 120;

  Gpt model = make_gpt(letters.vocab_size(), large ? 128 : 32, length, large ? 4 : 2);
  State state = setup(OptimiserChain(ClipGlobalNorm{1}, AdamW{.eta = 1e-3}), model);
  const auto rate = warmup(steps / 20, CosineRate{.start = large ? 1e-3 : 1e-2, .end = 1e-4, .steps = steps});
  const auto loss = [](const Gpt& m, const Array& x, const Array& y) { return labelcrossentropy(m(x), y); };
  for (int64_t step = 0; step < steps; ++step) {
    adjust(state, rate(step));
    const Array begins = randint(0, training.count() - length, {1, batch});
    const Array value = trainstep(loss, model, pieces(training, begins, length), state);
    if (step % (steps / 6) == 0) std::cout << "step " << step << ": " << value.item() << "\n";
  }

  double validation = 0;
  const Array begins = length * reshape(arange(batch), {1, batch});
  const int64_t batches = (rest.count() - 1) / (length * batch);
  for (int64_t i = 0; i < batches; ++i) {
    const auto [x, y] = pieces(rest, begins + i * length * batch, length);
    validation += loss(model, x, y).item() / static_cast<double>(batches);
  }
  Array written = training(slice(0, length));
  for (int i = 0; i < 60; ++i) {
    const Array next = categorical(model(reshape(written, {-1, 1})(slice(-length, to_end)))(slice(), -1, 0) * 1.5);
    written = concat({written, reshape(cast(next, Int32), {1})}, 0);
    eval(written);
  }
  std::cout << letters.decode(written.to_vector<int32_t>()) << "\n";
  std::cout << "validation loss " << validation << ", by frequency " << entropy(all, letters.vocab_size()) << "\n";
  std::cout << "better than letters by their frequency: "
            << (validation < entropy(all, letters.vocab_size()) ? "yes" : "no") << "\n";
}
