/** Why a record was refused: a reason from a closed list, the field, and a sentence with the value and the bound. */
@NullMarked
package dev.millrace.schemas.refusal;

import org.jspecify.annotations.NullMarked;
