// A progress bar for training loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <rosin/export.hpp>

namespace rosin {

/// Shows how far training is: epoch, loss, accuracy, samples per second, time left. On a terminal one line is redrawn,
/// at most ten times a second and always within the terminal's width, and every finished epoch leaves a line. On any
/// other output there is one plain line per epoch. A null `out` shows nothing. Epochs count from 0 here and from 1 on
/// the screen. Errors of the output are ignored; `out` stays the caller's. For one thread.
///
///     rosin::Progress progress(epochs, images, stderr);
///     for each epoch e:
///       for each batch: progress.update(e, samples_done, loss);
///       progress.finish_epoch(e, mean_loss, accuracy);
class ROSIN_API Progress {
 public:
  /// seconds: a clock that never runs backwards; null is the system's.
  Progress(int64_t epochs, int64_t samples_per_epoch, std::FILE* out, double (*seconds)() = nullptr);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Ends a line that is still under way, so that what comes next (an error message) has its own.
  ~Progress();

  /// samples_done: since the start of this epoch. loss: of the last batch, or a running mean.
  void update(int64_t epoch, int64_t samples_done, double loss);

  /// accuracy: a share from 0 to 1; NaN where none was measured.
  void finish_epoch(int64_t epoch, double loss, double accuracy);

 private:
  void begin(int64_t epoch);
  double seconds_left(double epochs_done, double now) const;
  std::string epoch_text(int64_t epoch) const;
  void replace_line(const std::string& line, bool finished);

  int64_t epochs_;
  int64_t samples_per_epoch_;
  std::FILE* out_;
  double (*seconds_)();
  bool terminal_;
  bool begun_ = false;
  int64_t first_epoch_ = 0;  // training that resumes does not begin at 0
  double started_;           // when the first epoch began
  double epoch_started_;
  double rate_ = 0;  // samples per second of the epoch under way; 0: unknown
  double last_drawn_ = 0;
  double accuracy_;             // of the last finished epoch
  std::size_t line_width_ = 0;  // of the line under way; 0: there is none
};

}  // namespace rosin
