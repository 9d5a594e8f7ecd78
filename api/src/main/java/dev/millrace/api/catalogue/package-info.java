/**
 * Extension points and kinds of this process: Millrace's own and those of plug-ins.
 *
 * <p>{@link dev.millrace.api.catalogue.Catalogue#current()} is used to bind configurations. An embedding program may
 * install another one first; plug-ins on its class path are always included.
 */
@NullMarked
package dev.millrace.api.catalogue;

import org.jspecify.annotations.NullMarked;
