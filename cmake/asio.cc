// Boost.Asio, compiled once for every file that uses it.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
