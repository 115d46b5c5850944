"""Texts about everyday life in English and in six other languages."""

_TEXTS = {
    "English": """
The food was excellent, but the waiter let us wait for almost an hour.
Last night I watched an old film and fell asleep before the end.
Our neighbour complains every week about the noise of the children.
After the operation she could not walk without crutches for three weeks.
The contract was ended because the bill had not been paid in time.
The football match was cancelled at the last minute because of the rain.
""",
    "German": """
Das Essen war ausgezeichnet, aber der Kellner hat uns fast eine Stunde warten lassen.
Gestern habe ich mir einen alten Film angesehen und bin dabei eingeschlafen.
Unser Nachbar beschwert sich jede Woche über den Lärm der spielenden Kinder.
Nach der Operation konnte sie drei Wochen lang nicht ohne Krücken gehen.
Der Vertrag wurde gekündigt, weil die Rechnung nicht rechtzeitig bezahlt worden war.
Wegen des starken Regens wurde das Fußballspiel in letzter Minute abgesagt.
""",
    "French": """
Le repas était délicieux, mais le serveur nous a fait attendre presque une heure.
Hier soir, j'ai regardé un vieux film et je me suis endormi avant la fin.
Notre voisin se plaint chaque semaine du bruit que font les enfants.
Après l'opération, elle n'a pas pu marcher sans béquilles pendant trois semaines.
Le contrat a été résilié parce que la facture n'avait pas été payée à temps.
Le match de football a été annulé à la dernière minute à cause de la pluie.
""",
    "Japanese": """
料理はとてもおいしかったのですが、注文してから一時間近く待たされました。
昨日の夜、古い映画を見ていたら途中で眠ってしまいました。
隣の人は子どもたちの声がうるさいと毎週苦情を言いに来ます。
手術のあと、彼女は三週間も松葉杖なしでは歩けませんでした。
期限までに代金が支払われなかったので、契約は解除されました。
大雨のため、サッカーの試合は開始直前に中止になりました。
""",
    "Chinese": """
菜很好吃，可是服务员让我们等了差不多一个小时。
昨天晚上我看了一部老电影，看到一半就睡着了。
我们的邻居每个星期都抱怨孩子们太吵。
手术以后，她有三个星期不能离开拐杖走路。
因为没有按时付款，合同被取消了。
因为下大雨，足球比赛在最后一刻取消了。
""",
    "Arabic": """
كان الطعام لذيذا جدا لكن النادل تركنا ننتظر ساعة كاملة تقريبا.
شاهدت البارحة فيلما قديما ونمت قبل أن ينتهي.
جارنا يشتكي كل أسبوع من ضجيج الأطفال في الشارع.
بعد العملية لم تستطع أن تمشي بدون عكازين لمدة ثلاثة أسابيع.
ألغي العقد لأن الفاتورة لم تدفع في موعدها.
ألغيت مباراة كرة القدم في اللحظة الأخيرة بسبب المطر الشديد.
""",
    "Russian": """
Еда была очень вкусной, но официант заставил нас ждать почти целый час.
Вчера вечером я смотрел старый фильм и уснул, не досмотрев до конца.
Наш сосед каждую неделю жалуется на шум, который поднимают дети.
После операции она три недели не могла ходить без костылей.
Договор расторгли, потому что счёт не был оплачен вовремя.
Из-за сильного дождя футбольный матч отменили в последнюю минуту.
""",
}
TEXTS = {language: texts.strip().split("\n") for language, texts in _TEXTS.items()}
FOREIGN = [language for language in TEXTS if language != "English"]
