package dev.millrace.generator.staleness;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * What admission must not forget: which request is next, how many samples were asked for, how many of them were lost,
 * which prompts are to be released once more.
 *
 * <p>It is kept as the metadata of admission's committed offsets, in the transaction that releases the prompts. So it is
 * exact after a crash at any moment, and stays so when old records are deleted.
 *
 * @param nextOrdinal ordinal of the next request
 * @param released samples asked for, lost ones included; begins at what the policy had consumed before the run
 * @param consumed samples in batches that the learner has consumed, as far as the training log was read
 * @param lost samples that will never reach a batch; below 0 where one that was lost before this counts was redriven
 * @param again prompts to be released once more, in this order, before new ones; at most {@value #MAX_AGAIN}
 */
record ControllerState(long nextOrdinal, long released, long lost, long consumed, List<ResampleRequest> again) {
    /** A committed offset's metadata holds 4096 bytes. */
    static final int MAX_AGAIN = 100;

    private static final Pattern TEXT = Pattern.compile(
            "ordinal=(\\d{1,18}) released=(\\d{1,18}) lost=(-?\\d{1,18}) consumed=(\\d{1,18})(?: again=([0-9:,]+))?");

    ControllerState {
        again = List.copyOf(again);
    }

    ControllerState(long nextOrdinal, long released, long lost, long consumed) {
        this(nextOrdinal, released, lost, consumed, List.of());
    }

    ControllerState withReleased(long groups, int groupSize) {
        List<ResampleRequest> left = again.subList((int) Math.min(groups, again.size()), again.size());
        return new ControllerState(nextOrdinal + groups, released + groups * groupSize, lost, consumed, left);
    }

    ControllerState withLost(long samples) {
        return new ControllerState(nextOrdinal, released, lost + samples, consumed, again);
    }

    /** At least so many were consumed; what two records say in two orders is one. */
    ControllerState withConsumed(long samples) {
        return new ControllerState(nextOrdinal, released, lost, Math.max(consumed, samples), again);
    }

    /** One more prompt is to be released once more; there is room for it. */
    ControllerState sampling(ResampleRequest prompt) {
        List<ResampleRequest> more = new ArrayList<>(again);
        more.add(prompt);
        return new ControllerState(nextOrdinal, released, lost, consumed, more);
    }

    boolean hasRoomToSampleAgain() {
        return again.size() < MAX_AGAIN;
    }

    String text() {
        return "ordinal=" + nextOrdinal + " released=" + released + " lost=" + lost + " consumed=" + consumed
                + (again.isEmpty()
                        ? ""
                        : " again="
                                + again.stream()
                                        .map(a -> a.prompt() + ":" + a.attempt())
                                        .collect(Collectors.joining(",")));
    }

    /** @throws IllegalArgumentException if the text was not written by {@link #text()} */
    static ControllerState parse(String text) {
        Matcher matcher = TEXT.matcher(text);
        if (!matcher.matches()) {
            throw new IllegalArgumentException("not the state of an admission: '" + text + "'");
        }
        List<ResampleRequest> again = new ArrayList<>();
        for (String prompt :
                matcher.group(5) == null ? new String[0] : matcher.group(5).split(",", -1)) {
            String[] parts = prompt.split(":", -1);
            again.add(new ResampleRequest(Long.parseLong(parts[0]), Integer.parseInt(parts[1])));
        }
        return new ControllerState(
                Long.parseLong(matcher.group(1)),
                Long.parseLong(matcher.group(2)),
                Long.parseLong(matcher.group(3)),
                Long.parseLong(matcher.group(4)),
                again);
    }
}
