package dev.millrace.generator.sampling;

import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.schemas.Quarantine;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Pauses a generator in quarantine, so that other generators get its prompts. Confined to the thread that reads
 * prompts.
 */
public final class QuarantineWatch {
    private static final Logger LOG = LoggerFactory.getLogger(QuarantineWatch.class);

    private final String id;
    private final String who;
    private final Quarantines quarantines;
    private final PromptSource prompts;
    private boolean isAside;

    public QuarantineWatch(String id, String role, Quarantines quarantines, PromptSource prompts) {
        this.id = id;
        this.who = role + " " + id;
        this.quarantines = quarantines;
        this.prompts = prompts;
    }

    /** Leaves the prompts or takes them again, if anything has changed. */
    public void look() {
        Optional<Quarantine> quarantine = quarantines.of(id);
        if (quarantine.isPresent() == isAside) {
            return;
        }
        isAside = quarantine.isPresent();
        if (isAside) {
            LOG.warn(
                    "{} is in quarantine and takes no prompts: {}",
                    who,
                    quarantine.get().getSentence());
        } else {
            LOG.info("{} is in quarantine no longer and samples again", who);
        }
        prompts.stayAway(isAside);
    }
}
