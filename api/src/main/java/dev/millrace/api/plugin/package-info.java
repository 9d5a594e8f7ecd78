/**
 * How a jar brings kinds of its own: what it is called, against which version it was built, and which doors it comes through.
 *
 * <p>{@link dev.millrace.api.plugin.Plugin} is what a jar implements; a {@link dev.millrace.api.plugin.Kind} is one thing that it
 * offers. Millrace's own kinds come through the same doors.
 */
@NullMarked
package dev.millrace.api.plugin;

import org.jspecify.annotations.NullMarked;
