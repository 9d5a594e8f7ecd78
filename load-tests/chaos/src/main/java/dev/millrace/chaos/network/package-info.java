/** What stands between the clients and each broker, and does to their bytes what networks do. */
@NullMarked
package dev.millrace.chaos.network;

import org.jspecify.annotations.NullMarked;
