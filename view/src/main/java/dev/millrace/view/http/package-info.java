/** The page's server on loopback: one file for the page, JSON for what it shows, a stream of events for what is new. */
@NullMarked
package dev.millrace.view.http;

import org.jspecify.annotations.NullMarked;
