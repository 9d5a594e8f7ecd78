/**
 * Interfaces of plug-ins: name, API version and kinds.
 *
 * <p>{@link dev.millrace.api.plugin.Plugin} is implemented by a jar; a {@link dev.millrace.api.plugin.Kind} is one
 * choice that it offers. Millrace's own kinds use the same extension points.
 */
@NullMarked
package dev.millrace.api.plugin;

import org.jspecify.annotations.NullMarked;
