package dev.millrace.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class AdmissionCapacityTest {
    private final AdmissionCapacity admission = new AdmissionCapacity(8, 4, 2);

    @Test
    void shouldBeBoundedByConcurrencyWhileDataIsFresh() {
        // staleness would allow (2 + 0 + 1) * 4 - 3 = 9
        assertThat(admission.capacity(0, 3, 0)).isEqualTo(5);
    }

    @Test
    void shouldBeBoundedByStalenessWhenTheLearnerIsBehind() {
        // 12 - (9 + 2) = 1, where concurrency would allow 6
        assertThat(admission.capacity(0, 2, 9)).isEqualTo(1);
        assertThat(admission.capacity(1, 2, 9)).isEqualTo(5);
    }

    @Test
    void shouldBeNegativeWhenMoreIsRunningThanTheLimitsAllow() {
        assertThat(admission.capacity(0, 10, 4)).isEqualTo(-2);
    }

    @Test
    void shouldNeverAdmitWhatWouldBeTooStaleWhenConsumed() {
        for (int version = 0; version < 5; version++) {
            for (int accepted = 0; accepted < 40; accepted++) {
                long admitted = Math.max(0, admission.capacity(version, 0, accepted));
                if (admitted > 0) {
                    long consumedAt = (accepted + admitted - 1) / 4;
                    assertThat(consumedAt - version).isLessThanOrEqualTo(2);
                }
            }
        }
    }

    @Test
    void shouldAdmitAsFromTheStartAfterRecoveryAtAnyVersion() {
        assertThat(admission.capacity(24, 0, admission.acceptedAt(24))).isEqualTo(admission.capacity(0, 0, 0));
        assertThat(admission.pendingLimit()).isEqualTo(12);
    }

    @Test
    void shouldRefuseLimitsTheReferenceRaisesInSilence() {
        assertThatThrownBy(() -> new AdmissionCapacity(0, 4, 2)).hasMessageContaining("maxConcurrent=0");
        assertThatThrownBy(() -> new AdmissionCapacity(8, 0, 2)).hasMessageContaining("batchSize=0");
        assertThatThrownBy(() -> new AdmissionCapacity(8, 4, -1)).hasMessageContaining("maxStaleness=-1");
        assertThatThrownBy(() -> admission.capacity(0, -1, 0)).hasMessageContaining("running=-1");
        assertThat(AdmissionCapacity.referenceCapacity(0, 0, 0, 0, 1, 1)).isEqualTo(-1);
        assertThat(AdmissionCapacity.referencePendingLimit(0, 0)).isZero();
    }
}
