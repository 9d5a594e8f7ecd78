/** The page's loopback server: the page, JSON answers, and an event stream of updates. */
@NullMarked
package dev.millrace.view.http;

import org.jspecify.annotations.NullMarked;
