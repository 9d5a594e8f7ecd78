/**
 * Which doors there are, and what came through them: Millrace's own kinds and those of plug-ins, for this process.
 *
 * <p>{@link dev.millrace.api.catalogue.Catalogue#current()} is what configurations are bound with. A program that embeds Millrace
 * installs another before it binds one; plug-ins that are on its class path are there from the start.
 */
@NullMarked
package dev.millrace.api.catalogue;

import org.jspecify.annotations.NullMarked;
