// The one macro of rosin: marks what librosin.so exports. Everything else is hidden.
#pragma once

#define ROSIN_API __attribute__((visibility("default")))
