"""The plugin's secrets in the host's vault. Capability `secrets`."""

from __future__ import annotations

from kandev_plugin.host.base import Caller
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.secret import Secret


class Secrets(Caller):
    """GetSecret, SetSecret, DeleteSecret, RevealSecret."""

    def secret(self, key: str) -> Secret | None:
        """A secret of this plugin; `None` when it was never set. `GetSecret`. Keys begin with a letter or digit and go
        on with letters, digits, `.`, `_` and `-`, 128 in all.
        """
        answer = self._call("GetSecret", pb.GetSecretRequest(key=key), pb.GetSecretResponse)
        return Secret(answer.value) if answer.found else None

    def set_secret(self, key: str, value: Secret) -> None:
        """Stores a secret. `SetSecret`."""
        self._call("SetSecret", pb.SetSecretRequest(key=key, value=value.reveal()), pb.SetSecretResponse)

    def delete_secret(self, key: str) -> None:
        """Removes a secret; no error when there is none. `DeleteSecret`."""
        self._call("DeleteSecret", pb.DeleteSecretRequest(key=key), pb.DeleteSecretResponse)

    def reveal_secret(self, reference: str) -> Secret:
        """The secret behind a reference that the host gave out. `RevealSecret`."""
        answer = self._call("RevealSecret", pb.RevealSecretRequest(ref=reference), pb.RevealSecretResponse)
        return Secret(answer.value)
