/**
 * Creates the roles of a run from its configuration and runs each on its own thread.
 *
 * <p>Roles stop in start order, so that producers end before their consumers. A role that ends unexpectedly stops the others.
 */
@NullMarked
package dev.millrace.runtime.pipeline;

import org.jspecify.annotations.NullMarked;
