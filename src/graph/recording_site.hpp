// Recording sites: which layer of a model recorded an op, as a path like "blocks[3].embed". Only ops that look at
// values when they run carry theirs (KindInfo::checks), as a number in their attributes that is no part of keys: their
// errors come when nobody is inside the layer any more. Read next: model/locate.hpp (the calls that are under way).
#pragma once

#include <cstdint>

#include <rosin/error.hpp>

#include "graph/node.hpp"

namespace rosin {

/// A call of a layer, or with a model, that is under way on this thread. It stands on the stack of who calls, or in
/// what ends in the order of a stack.
class CallUnderWay {
 public:
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;

  /// As detail::locate says it of an error.
  virtual void locate(Error& error) const = 0;
  /// The same without text: `layer` is the innermost layer, or what has it as a part; `path` stays equal for equal
  /// paths. Takes no memory.
  virtual void follow(Error::Place& layer, uint64_t& path) const = 0;

  static const CallUnderWay* innermost() noexcept { return innermost_; }
  const CallUnderWay* outer() const noexcept { return outer_; }

 protected:
  CallUnderWay() noexcept : outer_(innermost_) { innermost_ = this; }
  ~CallUnderWay() { innermost_ = outer_; }

 private:
  friend class SameSite;
  static constinit __attribute__((tls_model("initial-exec"))) thread_local const CallUnderWay* innermost_;
  const CallUnderWay* outer_;
};

/// Where this thread records now: 0 outside of layers and where no path is known, else the number of a path. Takes
/// memory when a path comes for the first time.
uint32_t recording_site();

/// Of an op that checks values.
uint32_t site_of(const Attributes& attributes) noexcept;
void set_site(Attributes& attributes, uint32_t site) noexcept;

/// The error of an op that was recorded there: its path begins the text, as it begins that of an error of the call. No
/// layer that the error passes adds its own.
void add_site(Error& error, uint32_t site);
/// The same error, which has its path already, with more at the end of its text.
Error with_more(const Error& error, const std::string& more);

/// While it lives, what this thread records has the site of a node: what a gradient adds to that.
class SameSite {
 public:
  explicit SameSite(const Node& node) noexcept;
  SameSite(const SameSite&) = delete;
  SameSite& operator=(const SameSite&) = delete;
  ~SameSite();

 private:
  const CallUnderWay* call_;
  uint32_t before_;
};

}  // namespace rosin
