/** Run identity, topic names, and the record schema of each topic. */
@NullMarked
package dev.millrace.schemas.run;

import org.jspecify.annotations.NullMarked;
