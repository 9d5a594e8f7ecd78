/** How a run uses Kafka: whom to connect to, as which run, with which schemas. */
@NullMarked
package dev.millrace.log;

import org.jspecify.annotations.NullMarked;
