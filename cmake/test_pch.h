// What every test includes, compiled once.
#pragma once

#include <gtest/gtest.h>

#include "pch.h"
