package dev.millrace.chaos;

import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonInclude;
import dev.millrace.chaos.fault.Fault;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What became of one fault.
 *
 * @param atSeconds when it began, since the first could have
 * @param part what was hit: a role, {@code broker}, {@code network} or {@code topics}
 * @param partSeconds from the fault's end until the part that was hit committed something again; null if it did not within the limit,
 *     or if no part of its own was hit
 * @param runSeconds from the fault's end until the run made a version again; null if it did not within the limit
 * @param notes what else was seen
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record FaultOutcome(
        Fault fault,
        double atSeconds,
        String part,
        @Nullable Double partSeconds,
        @Nullable Double runSeconds,
        List<String> notes) {
    public FaultOutcome {
        notes = List.copyOf(notes);
    }

    /** The same where what should have been seen was not. */
    FaultOutcome failed() {
        return new FaultOutcome(fault, atSeconds, part, partSeconds, null, notes);
    }

    /** The same of another part. */
    FaultOutcome of(String hit) {
        return new FaultOutcome(fault, atSeconds, hit, partSeconds, runSeconds, notes);
    }

    /** Whether the run continued. */
    @JsonIgnore
    public boolean isSurvived() {
        return runSeconds != null;
    }
}
