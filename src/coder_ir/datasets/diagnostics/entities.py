"""Foods, nutrients, exposures and conditions of nutrition science, and the words that name them."""

import re
from dataclasses import dataclass

FOOD, CONDITION = "food", "condition"


@dataclass(frozen=True, slots=True)
class Entity:
    """Something a passage can be about."""

    name: str  # as a query says it
    kind: str  # food or condition
    core: re.Pattern[str]  # words that name it and nothing else
    pattern: re.Pattern[str]  # these and every word that hints at it


# Words that name it; then, after a semicolon, words that hint at it.
_FOODS = {
    "red meat": r"meats?|beef|pork|lamb|sausages?|ham|bacon|hot dogs?|steaks?",
    "poultry": r"poultry|chickens?|turkeys?|broilers?",
    "fish": r"fish\w*|seafood|salmon|tuna;cod|shellfish|omega-3|n-3|EPA|DHA",
    "eggs": r"eggs?|yolks?",
    "dairy products": r"dairy|milk|cheeses?|yogh?urts?;butter|whey|casein",
    "soy foods": r"soy\w*|tofu;isoflavones?|genistein|daidzein|miso",
    "nuts": r"nuts?|almonds?|walnuts?|pistachios?|peanuts?|hazelnuts?|cashews?",
    "coffee": r"coffees?;caffein\w+|espresso",
    "tea": r"teas?;catechins?|EGCG|epigallocatechin\w*|camellia",
    "alcohol": r"alcohol\w*|wines?|beers?;ethanol|drinkers?|drinking|spirits",
    "chocolate": r"chocolates?|cocoa|cacao",
    "berries": r"\w*berr(?:y|ies)|blackcurrants?|acai",
    "citrus fruit": r"citrus|oranges?|grapefruits?|lemons?;limes?|hesperidin|naringenin",
    "apples": r"apples?",
    "grapes": r"grapes?;resveratrol|raisins?|wines?",
    "tomatoes": r"tomato\w*;lycopene",
    "broccoli": r"broccoli;crucifer\w+|sulforaphane|brassica|cabbages?|kale|isothiocyanates?",
    "garlic": r"garlic;allium|onions?|allicin",
    "turmeric": r"turmeric|curcumin\w*;curcuma",
    "flaxseed": r"flax\w*;linseeds?|lignans?",
    "whole grains": r"whole[- ]grains?;grains?|cereals?|oats?|oatmeal|bran|barley|rye|wheat|bread",
    "beans": r"beans?|legumes?;lentils?|chickpeas?|pulses|peas",
    "olive oil": r"olives?",
    "salt": r"salt|sodium;salty|salted",
    "sugar": r"sugars?|fructose|sugary|soft drinks?|sodas?;sucrose|sweetened|HFCS",
    "artificial sweeteners": r"sweeteners?|aspartame;saccharin|sucralose|erythritol|xylitol|stevia",
    "vitamin C": r"vitamin C|ascorb\w+",
    "vitamin D": r"vitamin D|25\(OH\)D|25-hydroxy\w*|cholecalciferol|D3|calcitriol",
    "vitamin E": r"vitamin E|tocopherols?",
    "vitamin B12": r"B-?12|cobalamin",
    "folic acid": r"folate|folic|methylfolate",
    "calcium": r"calcium",
    "magnesium": r"magnesium",
    "potassium": r"potassium",
    "iron": r"iron;heme|ferritin",
    "zinc": r"zinc",
    "selenium": r"selenium",
    "iodine": r"iod\w+",
    "fiber": r"fib(?:er|re)s?|psyllium",
    "saffron": r"saffron|crocin",
    "ginger": r"ginger|zingiber",
    "cinnamon": r"cinnam\w+|cassia",
    "probiotics": r"probiotic\w*;lactobacill\w+|bifidobacteri\w+|lactic acid bacteria",
    "mushrooms": r"mushrooms?;lentinula|agaricus|mycelium",
    "pomegranate": r"pomegranates?;ellagitannins?|punica",
    "spinach": r"spinach;lutein|leafy",
    "beetroot": r"beet\w*;nitrates?",
    "exercise": r"exercis\w+|physical activity;walking|training|aerobic|sedentary|fitness",
    "smoking": r"smok\w+|tobacco|cigarettes?|nicotine",
    "mercury": r"mercury|methylmercury;MeHg",
    "dioxins": r"dioxins?;PCBs?|polychlorinated|PCDD\w*|TCDD",
    "pesticides": r"pesticides?|insecticides?|herbicides?;DDT|DDE|organochlorine\w*",
    "flame retardants": r"PBDEs?|polybrominated|flame retardants?;HBCD",
    "phthalates": r"phthalates?",
    "bisphenol A": r"bisphenol|BPA",
    "arsenic": r"arsen\w+",
    "cadmium": r"cadmium|Cd",
    "lead": r"lead (?:exposure|levels?|poisoning|contamination)|blood lead",
    "statins": r"statins?;\w+vastatin",
    "acrylamide": r"acrylamide",
    "heterocyclic amines": r"heterocyclic amines?;heterocyclic|HCAs?|PhIP|MeIQx",
    "vegetarian diets": r"vegetarian\w*|vegan\w*;plant-based",
    "the Mediterranean diet": r"mediterranean",
    "low-carbohydrate diets": r"low-carb\w*|Atkins|ketogenic|carbohydrate-restrict\w+",
}
_CONDITIONS = {
    "breast cancer": r"breast cancers?|breast tumou?rs?;breasts?|mammar\w+|MCF-7|mammograph\w+",
    "prostate cancer": r"prostate cancers?;prostat\w+|PSA|LNCaP|PC-3",
    "colorectal cancer": r"colorectal|colon cancers?;colorect\w+|colon\w*|rectal|bowel|CRC",
    "lung cancer": r"lung cancers?;lungs?|pulmonary",
    "pancreatic cancer": r"pancreatic cancers?;pancrea\w+",
    "stomach cancer": r"(?:gastric|stomach) cancers?;gastric|stomach",
    "heart disease": r"heart|coronary|cardiovascular|CHD|CVD;cardi\w+|myocardial|atheroscle\w+",
    "stroke": r"strokes?|cerebrovascular",
    "high blood pressure": r"blood pressure|hypertens\w+;systolic|diastolic|BP",
    "high cholesterol": r"cholesterol\w*|LDL|blood lipids?|lipid profile"
    r";HDL|lipid levels|lipoproteins?|\w*lipida?emi\w+|triglycerides?",
    "type 2 diabetes": r"diabet\w+;insulin|glyc\w+|T2D\w*|DM",
    "obesity": r"obes\w+|overweight|weight (?:loss|gain);body weight|BMI|adipos\w+|body mass",
    "asthma": r"asthma\w*|wheez\w+",
    "allergies": r"allerg\w+;eczema|atop\w+",
    "arthritis": r"\w*arthrit\w+;joints?",
    "osteoporosis": r"osteopor\w+|bones?;fractures?",
    "Alzheimer's disease": r"alzheimer\w*|dementia;cogniti\w+|amyloid|neurodegenerat\w+",
    "Parkinson's disease": r"parkinson\w*",
    "depression": r"depress\w+;mood|anxiety",
    "kidney disease": r"kidneys?|renal;nephr\w+|dialysis|creatinine",
    "liver disease": r"liver|hepat\w+;NAFLD|cirrhosis",
    "migraine": r"migraines?|headaches?",
    "ADHD": r"ADHD|hyperactiv\w+|attention[- ]deficit",
    "autism": r"autis\w+",
    "infertility": r"infertil\w+|sperm\w*|semen;fertil\w+|testosterone",
    "pregnancy": r"pregnan\w+;births?|fetal|foetal|prenatal|neonatal|congenital",
    "multiple sclerosis": r"multiple sclerosis",
    "Crohn's disease": r"crohn\w*;colitis|inflammatory bowel|IBD",
    "acne": r"acne",
    "urinary tract infections": r"urinary tract|UTIs?;E\. coli",
    "the common cold": r"common colds?|respiratory tract infections?;colds?|influenza|flu",
    "gout": r"gout|uric acid|urate",
    "eye disease": r"cataract\w*|macular degeneration;macular|eye|eyes|ocular|visual",
    "tooth decay": r"dental|caries;tooth|teeth|enamel|oral health",
    "anemia": r"ana?emi\w+;hemoglobin",
    "inflammation": r"inflammat\w+;C-reactive|CRP|cytokines?",
    "mortality": r"mortality|longevity;lifespan|deaths?|survival",
    "thyroid disease": r"thyroid\w*|goit\w+",
    "sleep problems": r"sleep\w*|insomnia",
    "nausea": r"nausea|vomiting",
    "leukemia": r"leuk(?:a)?emi\w+",
    "ovarian cancer": r"ovarian cancers?;ovar\w+",
    "skin problems": r"skin|wrinkl\w+|dermat\w+",
}


def _entity(name: str, words: str, kind: str) -> Entity:
    core, every = (
        re.compile(rf"(?<![\w-])(?:{these})(?!\w)", re.IGNORECASE)
        for these in (words.partition(";")[0], words.replace(";", "|"))
    )
    return Entity(name, kind, core, every)


ENTITIES = (
    *(_entity(name, words, FOOD) for name, words in _FOODS.items()),
    *(_entity(name, words, CONDITION) for name, words in _CONDITIONS.items()),
)
