// Entries of files that are no models: texts, lists, generators; and a training that goes on where it was.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/io.hpp>
#include <rosin/loader.hpp>

#include "io/real_files_testing.hpp"

#ifdef ROSIN_HAVE_JSON

namespace rosin {
namespace {

using namespace rosin::testing;

using Texts = std::vector<std::string>;

class Entries : public ScratchFolder {
 protected:
  std::string file() const { return path("run.safetensors"); }
};

TEST_F(Entries, TextsComeBackAsTheyWere) {
  const Texts words{"the", "", "a \"quoted\" one", "back\\slash", "tab\t\n", "Größe ⋮ 中", std::string("nul\0!", 5)};
  const std::string config = "{\"width\": 64}";
  save(file(), {{"vocabulary", words}, {"config", config}, {"note", "by hand"}, {"none", Texts()}, {"x", ones({2})}});
  Texts read{"old"}, none{"old"};
  std::string text = "old", note;
  Array x = zeros({2});
  load(file(), {{"vocabulary", read}, {"config", text}, {"note", note}, {"none", none}, {"x", x}});
  EXPECT_EQ(read, words);
  EXPECT_EQ(text, config);
  EXPECT_EQ(note, "by hand");
  EXPECT_EQ(none, Texts());
  EXPECT_EQ(x.to_vector(), (std::vector<float>{1, 1}));
  const SavedFile whole = load(file());
  EXPECT_EQ(whole.text("config"), config);
  EXPECT_EQ(whole.texts("vocabulary"), words);
  EXPECT_EQ(whole.arrays().size(), 1u);
}

TEST_F(Entries, TextsStandInTheMetadataAsOtherReadersExpect) {
  save(file(), {{"words", Texts{"a", "b\""}}, {"title", "x"}});
  const std::string bytes = bytes_of_file("run.safetensors");
  EXPECT_NE(bytes.find(R"("words":"[\"a\",\"b\\\"\"]","title":"x"})"), std::string::npos) << bytes;
}

TEST_F(Entries, NumbersInListsComeBackWhateverTheirCount) {
  const std::vector<int64_t> sizes{784, 256, int64_t{1} << 60};
  save(file(), {{"sizes", sizes}, {"rates", std::vector<double>{0.1, 1e-9}}, {"none", std::vector<float>()}});
  std::vector<int64_t> read;
  std::vector<double> rates{1, 2, 3};
  std::vector<float> none{1};
  load(file(), {{"sizes", read}, {"rates", rates}, {"none", none}});
  EXPECT_EQ(read, sizes);
  EXPECT_EQ(rates, (std::vector<double>{0.1, 1e-9}));
  EXPECT_TRUE(none.empty());
}

TEST_F(Entries, AGeneratorDrawsWhatItWouldHaveDrawn) {
  Rng rng(0xfedcba9876543210u);
  rand(rng, {100});
  save(file(), {{"rng", rng}, {"late", Rng::restored(3, ~uint64_t{0} - 5)}});
  const std::vector<float> expected = rand(rng, {10}).to_vector();
  Rng loaded(1), late;
  load(file(), {{"rng", loaded}, {"late", late}});
  EXPECT_EQ(rand(loaded, {10}).to_vector(), expected);
  EXPECT_EQ(loaded, rng);
  EXPECT_EQ(late, Rng::restored(3, ~uint64_t{0} - 5));
  EXPECT_EQ(load(file())["rng"].dtype(), UInt64);

  seed(5);
  save(file(), {{"rng", default_rng()}});
  const std::vector<float> drawn = uniform({4}).to_vector();
  load(file(), {{"rng", default_rng()}});
  EXPECT_EQ(uniform({4}).to_vector(), drawn);
}

struct Noisy {
  Array weight = zeros({3});
  mutable Rng rng{7};
  std::vector<float> draw() const { return rand(rng, {4}).to_vector(); }
};

TEST_F(Entries, AGeneratorInAModelIsSavedWithIt) {
  const Noisy saved;
  saved.draw();
  save(file(), {{"model", saved}});
  save(path("torch.safetensors"), saved, {.names = torch});
  const std::vector<float> expected = saved.draw();
  Noisy other{.rng = Rng(1)}, part{.rng = Rng(2)}, kept{.rng = Rng(3)};
  load(file(), {{"model", other}});
  EXPECT_EQ(other.draw(), expected);
  loadmodel(part, load(file()).part("model"));
  EXPECT_EQ(part.draw(), expected);
  loadmodel(part, other);
  EXPECT_EQ(part.draw(), saved.draw());
  EXPECT_EQ(load(path("torch.safetensors")).arrays().size(), 1u);
  load(path("torch.safetensors"), kept, {.names = torch});
  EXPECT_EQ(kept.rng, Rng(3));
}

TEST_F(Entries, AGeneratorIsLeftAloneWhenAnythingElseIsWrong) {
  save(file(), std::vector<NamedArray>{{"weight", zeros({2})}, {"rng", generator_state(Rng(5))}});
  Noisy model;
  EXPECT_THROW(load(file(), model), Error);
  EXPECT_EQ(model.rng, Rng(7));
  save(file(), std::vector<NamedArray>{{"weight", zeros({3})}, {"rng", zeros({2})}});
  EXPECT_EQ(
      error_here([&] { load(file(), model); }),
      "load: 'DIR/run.safetensors': a generator has a state of UInt64 (2) in the source; rng has another entry there; "
      "rename one of the two");
}

TEST_F(Entries, WhatIsMissingChangesNothing) {
  save(file(), {{"step", 3}, {"title", "new"}});
  int64_t step = 7;
  std::string title = "old", other = "kept";
  EXPECT_EQ(error_of(
                [&] {
                  load(file(), {{"step", step}, {"title", title}, {"other", other}});
                },
                ErrorKind::argument),
            "load: a text must be in the file; 'other' is not; metadata() lists all, and arrays() what is no text");
  EXPECT_EQ(step, 7);
  EXPECT_EQ(title, "old");
  Rng rng(9);
  EXPECT_THROW(load(file(), {{"title", title}, {"step", step}, {"rng", rng}}), Error);
  EXPECT_EQ(title, "old");
  load(file(), {{"step", step}, {"title", title}, {"other", other}, {"rng", rng}}, {.strict = false});
  EXPECT_EQ(step, 3);
  EXPECT_EQ(title, "new");
  EXPECT_EQ(other, "kept");
  EXPECT_EQ(rng, Rng(9));
}

TEST_F(Entries, WhatIsNoListOfTextsIsRefused) {
  for (const char* text : {"plain", "{\"a\": \"b\"}", "[1]", "[\"a\", [\"b\"]]", "[\"a\"", "\"a\"", "[null]", "[[]]"}) {
    save(file(), {{"words", text}});
    Texts words{"old"};
    EXPECT_EQ(error_of(
                  [&] {
                    load(file(), {{"words", words}});
                  },
                  ErrorKind::io),
              "load: a vector of texts must be a JSON list of strings; the entry 'words' is not; read it as one text");
    EXPECT_EQ(words, Texts{"old"});
  }
}

TEST_F(Entries, TextsThatFilesCannotKeepAreRefused) {
  EXPECT_EQ(error_of(
                [&] {
                  save(file(), {{"note", "\xff"}});
                },
                ErrorKind::argument),
            "save: names and texts must be UTF-8; one has other bytes; rename it, or save bytes as an array of UInt8");
  EXPECT_EQ(error_of(
                [&] {
                  save(file(), {{"rosin.format", "2"}});
                },
                ErrorKind::argument),
            "save: names of texts that begin with 'rosin.' are the library's own; got 'rosin.format'; rename it");
  EXPECT_THROW(save(file(), {{"note", std::string(100'000'001, 'x')}}), Error);
  EXPECT_TRUE(names_in_folder().empty());
}

TEST_F(Entries, ALoaderGoesOnFromAFile) {
  const auto noisy = mapobs([](const Array& x) { return x + uniform(x.shape()); }, zeros({1, 10}));
  const LoaderOptions options{.batchsize = 3, .shuffle = true, .rng = Rng(7)};
  DataLoader first(noisy, options);
  std::vector<std::vector<float>> expected, seen;
  while (first.epoch() < 3) {
    for (const Array& x : first) {
      const bool saved = first.epoch() == 1 && first.batch() == 2;
      if (saved) save(file(), {{"epoch", first.epoch()}, {"batch", first.batch()}});
      else if (first.epoch() > 1 || (first.epoch() == 1 && first.batch() > 2)) expected.push_back(x.to_vector());
    }
  }
  int64_t epoch = 0, batch = 0;
  load(file(), {{"epoch", epoch}, {"batch", batch}});
  DataLoader second(noisy, options);
  second.seek(epoch, batch);
  while (second.epoch() < 3) {
    for (const Array& x : second) seen.push_back(x.to_vector());
  }
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace rosin

#endif
