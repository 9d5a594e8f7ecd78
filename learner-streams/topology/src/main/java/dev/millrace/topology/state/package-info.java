/** What tasks remember: stores, the compact form of their values, and the clock that their deadlines are counted in. */
@NullMarked
package dev.millrace.topology.state;

import org.jspecify.annotations.NullMarked;
