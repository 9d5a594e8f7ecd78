package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.millrace.policy.ort.Ort;
import org.junit.jupiter.api.Test;

class EngineTest {

    @Test
    void shouldReadTheNamesOfDevices() {
        assertThat(Device.parse("cpu")).isEqualTo(Device.CPU);
        assertThat(Device.parse("cuda:3"))
                .isEqualTo(new Device(Device.Kind.CUDA, 3, false))
                .hasToString("cuda:3");
        assertThat(Device.parse("cuda:0:tf32"))
                .isEqualTo(new Device(Device.Kind.CUDA, 0, true))
                .hasToString("cuda:0:tf32");
        assertThatThrownBy(() -> Device.parse("gpu"))
                .hasMessage("device must be cpu, cuda:N or cuda:N:tf32, such as cuda:0: device=gpu");
        assertThatThrownBy(() -> Device.parse("cuda:"))
                .hasMessage("device must be cpu, cuda:N or cuda:N:tf32, such as cuda:0: device=cuda:");
    }

    @Test
    void shouldRefuseCudaWhenTheArtifactHasNoCudaProvider() {
        assumeFalse(Ort.providers().contains("CUDAExecutionProvider"), "built with -Pgpu: the provider is there");
        assertThatThrownBy(() -> new Engine(Device.parse("cuda:0"), 1))
                .hasMessageStartingWith(
                        "device cuda:0 needs ONNX Runtime's CUDA provider, and this build carries only [")
                .hasMessageEndingWith("; build with -Pgpu, or choose device cpu");
    }

    @Test
    void shouldTryADeviceBeforeAnythingRestsOnIt() {
        assertThatCode(Engine.cpu()::requireUsable).doesNotThrowAnyException();
    }

    @Test
    void shouldRefuseNoThreads() {
        assertThatThrownBy(() -> new Engine(Device.CPU, 0))
                .hasMessage("intraOpThreads must be at least 1: intraOpThreads=0");
    }
}
